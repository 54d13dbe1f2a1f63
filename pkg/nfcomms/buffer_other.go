//go:build !linux

package nfcomms

import "errors"

// mapMax bounds what is taken from Go's heap, in bytes: 64 GiB.
const mapMax = 1 << 36

// mapPages returns size bytes of zeroed memory that start on a page.
func mapPages(size int) ([]byte, error) {
	if int64(size) > mapMax {
		return nil, errors.ErrUnsupported
	}
	return pages(size), nil
}

// unmapPages leaves what mapPages returned to the garbage collector.
func unmapPages([]byte) {}

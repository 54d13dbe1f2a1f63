//go:build !linux

package access

import (
	"errors"
	"syscall"
)

// peerOf needs Linux.
func peerOf(syscall.Conn) (Local, error) { return Local{}, errors.ErrUnsupported }

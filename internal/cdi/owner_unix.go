//go:build unix

package cdi

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user that a file belongs to, root if nobody knows.
func ownerOf(info fs.FileInfo) uint32 {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return s.Uid
	}
	return 0
}

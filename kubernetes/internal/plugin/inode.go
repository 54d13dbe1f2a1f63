package plugin

import (
	"io/fs"
	"syscall"
)

// inode returns the number of a file.
func inode(info fs.FileInfo) uint64 {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return s.Ino
	}
	return 0
}

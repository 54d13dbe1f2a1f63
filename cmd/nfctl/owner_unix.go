//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// ownerOf returns whom a file belongs to.
func ownerOf(st fs.FileInfo) owner {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return owner{int(s.Uid), int(s.Gid)}
	}
	return nobody
}

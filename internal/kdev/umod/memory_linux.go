package umod

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate makes the pages of memory present, to be written to if write is set, and reports
// whether that can be. Linux before 5.14 cannot tell.
func populate(address, length uintptr, write bool) bool {
	advice := uintptr(unix.MADV_POPULATE_READ)
	if write {
		advice = unix.MADV_POPULATE_WRITE
	}
	page := uintptr(os.Getpagesize())
	first := address &^ (page - 1)
	return !canPopulate() || advise(first, address+length-first, advice) == 0
}

func advise(address, length, advice uintptr) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, address, length, advice)
		if errno != unix.EINTR && errno != unix.EAGAIN {
			return errno
		}
	}
}

// canPopulate reports whether this system knows the advice, by memory that is there.
var canPopulate = sync.OnceValue(func() bool {
	mem := make([]byte, 2*os.Getpagesize())
	address := uintptr(unsafe.Pointer(&mem[0]))
	page := uintptr(os.Getpagesize())
	return advise((address+page-1)&^(page-1), page, unix.MADV_POPULATE_READ) == 0
})

package region

import (
	"fmt"
	"syscall"

	"github.com/nfcomms/nfcomms/bridge"
)

// Pages returns size bytes of zeroed memory that start on a page and are not
// Go's; FreePages takes them back. More than the machine has is refused with
// ErrNoMemory: a kernel that overcommits would promise it and end the process when
// it is touched.
func Pages(size int) ([]byte, error) {
	var machine syscall.Sysinfo_t
	known := syscall.Sysinfo(&machine) == nil && machine.Unit > 0
	mem, err := []byte(nil), error(syscall.ENOMEM)
	if !known || uint64(size)/uint64(machine.Unit) <= uint64(machine.Totalram)+uint64(machine.Totalswap) {
		mem, err = syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	}
	if err != nil {
		return nil, fmt.Errorf("%d bytes of memory on this host: %w: %w", size, bridge.ErrNoMemory, err)
	}
	return mem, nil
}

// Discard gives the memory back, of what Pages returned, and keeps the addresses: they hold zeroes
// from then on, or what they held where memory is locked. True: it may be used again.
func Discard(mem []byte) bool {
	_ = syscall.Madvise(mem, syscall.MADV_DONTNEED) // refused for locked memory, which stays
	return true
}

// FreePages gives back what Pages returned.
func FreePages(mem []byte) { _ = syscall.Munmap(mem) } // fails only for memory of others

package nfcomms

import "syscall"

// mapPages returns size bytes of zeroed memory that start on a page and are not
// Go's. More than the machine has is refused here: a kernel that overcommits
// would promise it and end the process when it is touched.
func mapPages(size int) ([]byte, error) {
	var machine syscall.Sysinfo_t
	known := syscall.Sysinfo(&machine) == nil && machine.Unit > 0
	if known && uint64(size)/uint64(machine.Unit) > uint64(machine.Totalram)+uint64(machine.Totalswap) {
		return nil, syscall.ENOMEM
	}
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

// unmapPages gives back what mapPages returned.
func unmapPages(mem []byte) { _ = syscall.Munmap(mem) } // fails only for memory of others

package ring

import "golang.org/x/sys/unix"

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// platform returns an error where there are no rings.
func platform() error { return nil }

// newMemory makes memory that processes can share.
func newMemory() (int, error) {
	return unix.MemfdCreate("nfcomms-ring", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
}

// seal makes memory keep its size for ever.
func seal(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL)
	return err
}

// sealed reports whether memory keeps its size for ever.
func sealed(fd int) bool {
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err == nil && got&seals == seals
}

// newEvent makes what wakes a side.
func newEvent() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) }

// populate makes the pages of memory present, so that no access faults.
func populate(mem []byte) error { return unix.Madvise(mem, unix.MADV_POPULATE_WRITE) }

// openProcess returns what becomes readable when a process ends.
func openProcess(pid int32) (int, error) { return unix.PidfdOpen(int(pid), unix.PIDFD_NONBLOCK) }

// yield gives the processor to another process that wants it.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

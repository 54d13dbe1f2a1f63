package vhostuser

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// region is a piece of guest memory, mapped.
type region struct {
	guest, user uint64 // addresses: physical, and of the client's own
	bytes       []byte
}

// memory is what the guest shared. Its processor has the order of stores of
// User-Mode Linux, which is that of x86: stores are seen as they were made.
type memory []region

func (m memory) close() {
	for _, r := range m {
		_ = unix.Munmap(r.bytes) // it was mapped so
	}
}

// mapRegion maps a file that the device found to be long enough.
func mapRegion(guest, user, size, offset uint64, file int) (region, error) {
	b, err := unix.Mmap(file, int64(offset), int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return region{}, malformed("%d bytes of guest memory at offset %#x of their file: %w", size, offset, err)
	}
	return region{guest, user, b}, nil
}

// find returns a piece of memory by its address.
func (m memory) find(address, size uint64, start func(region) uint64) ([]byte, error) {
	for _, r := range m {
		from, all := address-start(r), uint64(len(r.bytes))
		if address >= start(r) && from <= all && size <= all-from {
			return r.bytes[from : from+size : from+size], nil
		}
	}
	return nil, malformed("%d bytes at %#x, which is no guest memory", size, address)
}

func byGuest(r region) uint64 { return r.guest }
func byUser(r region) uint64  { return r.user }

// guarded runs what touches guest memory. A client that cuts a file off ends its
// own connection, not this process.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface {
			error
			Addr() uintptr
		}:
			err = malformed("guest memory was cut off: %w", fault)
		default:
			panic(fault)
		}
	}()
	return f()
}

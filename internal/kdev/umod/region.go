package umod

import (
	"errors"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// regionMax is the most bytes of a region.
const regionMax = 1 << 36

// inPlace is all that there is to do about memory: the device is in this process, and finds
// the bytes of a transfer where they lie.
type inPlace struct{}

func (inPlace) Map([]byte) (uint64, error) { return 0, nil }
func (inPlace) Unmap(uint64, uint64)       {}

// register notes a region, for what it refuses; nothing is pinned in any case.
func (f *File) register(r *uapi.Register) syscall.Errno {
	switch errno := sized(r, r.Size); {
	case errno != 0:
		return errno
	case r.Flags&uapi.RegionDMABuf != 0:
		return syscall.EOPNOTSUPP
	case r.Flags&^uapi.RegionReadOnly != 0 || r.Rsvd0 != 0 || r.Rsvd != [3]uint64{} || r.FD != 0 || r.Offset != 0,
		r.Length == 0 || r.Length > regionMax:
		return syscall.EINVAL
	case !there(r.Address, r.Length, r.Flags&uapi.RegionReadOnly == 0):
		return syscall.EFAULT
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	area, err := f.regions.Register(unsafe.Slice(*(**byte)(unsafe.Pointer(&r.Address)), r.Length))
	switch {
	case errors.Is(err, bridge.ErrBusy):
		return syscall.EEXIST
	case errors.Is(err, bridge.ErrNoMemory):
		return syscall.ENOSPC
	case err != nil:
		return syscall.ENODEV
	}
	f.areas[r.Address] = area
	return 0
}

// unregister forgets the region that begins at an address, if no operation uses it.
func (f *File) unregister(u *uapi.Unregister) syscall.Errno {
	switch errno := sized(u, u.Size); {
	case errno != 0:
		return errno
	case u.Flags != 0 || u.Rsvd != [2]uint64{}:
		return syscall.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	area := f.areas[u.Address]
	if area == nil {
		return syscall.ENOENT
	}
	if area.Close() != nil {
		return syscall.EBUSY
	}
	delete(f.areas, u.Address)
	return 0
}

// occupy has a transfer hold the region that its memory is in, until it lands.
func (f *File) occupy(o *operation) {
	if o.raw.Opcode == uapi.OpSendInd || o.raw.Opcode == uapi.OpReceiveInd {
		o.region = f.regions.Use(o.data())
	}
}

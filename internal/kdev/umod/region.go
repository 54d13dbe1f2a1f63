package umod

import (
	"syscall"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

const (
	regionMax  = 1 << 36 // bytes of a region
	regionsMax = 1024    // regions of a file
)

// area is a region: memory of the caller, which the device finds where it lies.
type area struct {
	address, length uint64
	readOnly        bool
	users           int           // operations; guarded by file.mu
	memory          bridge.Region // that the device allocated, else nil
}

// register notes a region, for what it refuses; nothing is pinned in any case.
func (f *File) register(r *uapi.Register) syscall.Errno {
	switch errno := sized(r, r.Size); {
	case errno != 0:
		return errno
	case r.Flags&uapi.RegionDMABuf != 0:
		return syscall.EOPNOTSUPP
	case r.Flags&^uapi.RegionReadOnly != 0 || r.Region != 0 || r.Rsvd != [3]uint64{} || r.FD != 0 || r.Offset != 0,
		r.Length == 0 || r.Length > regionMax:
		return syscall.EINVAL
	case !there(r.Address, r.Length, r.Flags&uapi.RegionReadOnly == 0):
		return syscall.EFAULT
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.areas) == regionsMax {
		return syscall.ENOSPC
	}
	f.area++
	f.areas[f.area] = &area{address: r.Address, length: r.Length, readOnly: r.Flags&uapi.RegionReadOnly != 0}
	r.Region = f.area
	return 0
}

// unregister forgets a region, if no operation uses it.
func (f *File) unregister(u *uapi.Unregister) syscall.Errno {
	switch errno := sized(u, u.Size); {
	case errno != 0:
		return errno
	case u.Flags != 0 || u.Rsvd0 != 0 || u.Rsvd != [2]uint64{}:
		return syscall.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch a := f.areas[u.Region]; {
	case a == nil:
		return syscall.ENOENT
	case a.users > 0, a.memory != nil && a.memory.Close() != nil:
		return syscall.EBUSY
	}
	delete(f.areas, u.Region)
	return 0
}

// occupy has a transfer hold the region that it names until it lands, and gives it the address
// of its bytes. An errno: they are not there.
func (f *File) occupy(o *operation) syscall.Errno {
	if o.raw.Region == 0 || o.raw.Length == 0 {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch a := f.areas[o.raw.Region]; {
	case a == nil:
		return syscall.ENOENT
	case o.raw.Offset > a.length || o.raw.Length > a.length-o.raw.Offset:
		return syscall.ERANGE
	case a.readOnly && o.raw.Opcode == uapi.OpReceiveInd:
		return syscall.EACCES
	default:
		a.users++
		o.area, o.raw.Address = a, a.address+o.raw.Offset
		return 0
	}
}

package kdev

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

var _ bridge.Importer = (*Device)(nil)

// registrar registers memory with the module.
type registrar struct{ d *Device }

// offsetBits are those of an offset in a region. The table of regions has one number for a
// byte: the handle before the offset.
const offsetBits = 36

// split returns the handle of a region and the offset in it.
func split(at uint64) (handle uint32, offset uint64) {
	return uint32(at >> offsetBits), at & (1<<offsetBits - 1)
}

// Map has the module pin and map memory, and returns the place of its first byte.
func (r registrar) Map(data []byte) (uint64, error) {
	address := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	return r.d.register(uapi.Register{Address: address, Length: uint64(len(data))})
}

// Unmap ends what Map began. The module may have done so: when the memory was unmapped.
func (r registrar) Unmap(at, _ uint64) {
	var u uapi.Unregister
	u.Region, _ = split(at)
	u.Size = uint32(unsafe.Sizeof(u))
	_ = r.d.k.ioctl(uapi.IOCUnregister, unsafe.Pointer(&u))
}

// register makes a region in the module and returns the place of its first byte.
func (d *Device) register(u uapi.Register) (uint64, error) {
	u.Size = uint32(unsafe.Sizeof(u))
	if errno := d.k.ioctl(uapi.IOCRegister, unsafe.Pointer(&u)); errno != 0 {
		return 0, d.registerErr(&u, errno)
	}
	return uint64(u.Region) << offsetBits, nil
}

// registerErr returns why the module made no region.
func (d *Device) registerErr(u *uapi.Register, errno syscall.Errno) error {
	switch errno {
	case syscall.ENODEV:
		return errRemoved
	case syscall.EOPNOTSUPP:
		return fmt.Errorf("the module imports no memory: %w", bridge.ErrNotSupported)
	case syscall.ENOMEM:
		return d.limitErr(u.Length, errno)
	case syscall.ENOSPC:
		return fmt.Errorf("%w: too many regions of one user: %w", bridge.ErrNoMemory, errno)
	case syscall.EBUSY:
		return fmt.Errorf("%w: the kernel debugs DMA, and counts no more mappings of this memory: %w", bridge.ErrBusy, errno)
	case syscall.EINVAL, syscall.EBADF:
		if u.Flags&uapi.RegionDMABuf != 0 {
			return fmt.Errorf("descriptor %d is no dma-buf: %w: %w", u.FD, bridge.ErrInvalid, errno)
		}
		return fmt.Errorf("a region of %d bytes: at most 64 GiB: %w: %w", u.Length, bridge.ErrInvalid, errno)
	case syscall.EFAULT, syscall.EIO:
		return fmt.Errorf("%w: %d bytes at %#x: %w", bridge.ErrDMA, u.Length, u.Address, errno)
	default:
		return fmt.Errorf("%w: %w", bridge.ErrInvalid, errno)
	}
}

// limitErr tells apart a process that may not lock so much and a machine short of memory.
func (d *Device) limitErr(size uint64, errno syscall.Errno) error {
	var i uapi.Info
	i.Size = uint32(unsafe.Sizeof(i))
	if d.k.ioctl(uapi.IOCInfo, unsafe.Pointer(&i)) != 0 || size <= i.MemlockLimit-min(i.MemlockLimit, i.MemlockUsed) {
		return fmt.Errorf("pin %d bytes: %w: %w", size, bridge.ErrNoMemory, errno)
	}
	return lockedErr(size, &i, i.MemlockLimit, errno)
}

// Alloc returns a region of new memory, which the module pins and maps once.
func (d *Device) Alloc(size int) (bridge.Region, error) { return d.regions.Alloc(size) }

// Register makes a region of memory that is there, which the module pins and maps once.
// It must not be unmapped before the region is closed: transfers from it fail then.
func (d *Device) Register(mem []byte) (bridge.Region, error) { return d.regions.Register(mem) }

// Import makes a region of a dma-buf. See bridge.Importer.
func (d *Device) Import(fd int) (bridge.Region, error) {
	mem, free, err := window(fd)
	if err != nil {
		return nil, err
	}
	r, err := d.regions.Add(mem, func(mem []byte) (uint64, error) {
		return d.register(uapi.Register{
			Flags: uapi.RegionDMABuf, FD: int32(fd), Length: uint64(len(mem)),
		})
	}, free)
	if err != nil {
		free(mem)
		return nil, err
	}
	return r, nil
}

package kdev

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

var _ bridge.Importer = (*Device)(nil)

// registrar registers memory with the module. One that has no regions pins the memory of
// each transfer, also where it is a region's here.
type registrar struct{ d *Device }

// Map has the module pin and map memory, and returns where it is in this process.
func (r registrar) Map(data []byte) (uint64, error) {
	address := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	if r.d.adds.Load()&uapi.FeatureRegions == 0 {
		return address, nil
	}
	return r.d.register(uapi.Register{Address: address, Length: uint64(len(data))})
}

// Unmap ends what Map began. The module may have done so: when the memory was unmapped.
func (r registrar) Unmap(address, _ uint64) {
	u := uapi.Unregister{Address: address}
	u.Size = uint32(unsafe.Sizeof(u))
	_ = r.d.k.ioctl(uapi.IOCUnregister, unsafe.Pointer(&u))
}

// register makes a region in the module and returns its address.
func (d *Device) register(u uapi.Register) (uint64, error) {
	u.Size = uint32(unsafe.Sizeof(u))
	if errno := d.k.ioctl(uapi.IOCRegister, unsafe.Pointer(&u)); errno != 0 {
		return 0, d.registerErr(&u, errno)
	}
	return u.Address, nil
}

// registerErr returns why the module made no region.
func (d *Device) registerErr(u *uapi.Register, errno syscall.Errno) error {
	switch errno {
	case syscall.ENODEV:
		return errRemoved
	case syscall.ENOMEM:
		return d.limitErr(u.Length, errno)
	case syscall.ENOSPC:
		return fmt.Errorf("%w: too many regions of one user: %w", bridge.ErrNoMemory, errno)
	case syscall.EEXIST:
		return fmt.Errorf("memory of another region: %w: %w", bridge.ErrBusy, errno)
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
// Once it is unmapped, or its addresses name other memory, transfers do without the region.
func (d *Device) Register(mem []byte) (bridge.Region, error) { return d.regions.Register(mem) }

// Import makes a region of a dma-buf. See bridge.Importer.
func (d *Device) Import(fd int) (bridge.Region, error) {
	if d.adds.Load()&uapi.FeatureDMABuf == 0 {
		return nil, fmt.Errorf("the module imports no memory: %w", bridge.ErrNotSupported)
	}
	mem, free, err := window(fd)
	if err != nil {
		return nil, err
	}
	r, err := d.regions.Add(mem, func(mem []byte) (uint64, error) {
		return d.register(uapi.Register{
			Flags: uapi.RegionDMABuf, FD: int32(fd), Length: uint64(len(mem)),
			Address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))),
		})
	}, free)
	if err != nil {
		free(mem)
		return nil, err
	}
	return r, nil
}

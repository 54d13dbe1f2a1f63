package nfcomms

import "github.com/nfcomms/nfcomms/bridge"

// Region is memory that was registered with a device. Transfers whose bytes are
// inside, all of them, do no work on memory of their own; the device finds the region
// by their address, so the calls are the same as ever. Others are made as ever,
// and so do transfers of another device.
//
// The gain of a region depends on the device. With "sim:" it is little: pinning a
// buffer for the garbage collector. With "dev:" the module pins and maps the pages
// once, which count against RLIMIT_MEMLOCK until then; memory that is unmapped, or
// becomes other memory, is a region no more, and moves as memory of none. Regions stay
// over Reset and end with Close of the device.
// All methods are safe for concurrent use.
type Region struct {
	dev    *Device
	region bridge.Region
	data   any // keeps a registered object alive, and, since this is on the heap, off the stack
}

// Alloc returns a region of size bytes of new memory: zeroed, and starting on a page.
// ErrInvalid for less than one byte, ErrNoMemory for more than there is, and for more
// than 1,024 regions, ErrClosed once the device is closed.
func (d *Device) Alloc(size int) (*Region, error) {
	r, err := d.dev.Alloc(size)
	if err != nil {
		return nil, d.fail(opAlloc, 0, err)
	}
	return &Region{dev: d, region: r}, nil
}

// Register makes a region of an object that can be received into: a slice, or a
// pointer to an array, a struct or a scalar. It stays where it is, and alive, until the
// region is closed. ErrInvalid for a value or an object of no bytes, ErrBusy if a part
// of it belongs to a region of this device already, and the errors of Alloc.
//
//go:noinline
func (d *Device) Register(data any) (*Region, error) {
	r := &Region{dev: d, data: data}
	o, err := writableObject(data, nil)
	if err == nil {
		r.region, err = d.dev.Register(o.mem)
	}
	if err != nil {
		return nil, d.fail(opRegister, 0, err)
	}
	return r, nil
}

// Import makes a region of a dma-buf, all of it: memory of another device, which this
// one then reaches in place. The descriptor may be closed afterwards. Bytes that
// the other device's driver lets no process map are good for transfers, and must not be
// touched. ErrInvalid if it is no dma-buf, ErrNotSupported with other devices than
// "dev:", and the errors of Alloc.
func (d *Device) Import(fd int) (*Region, error) {
	var region bridge.Region
	i, ok := d.dev.(bridge.Importer)
	err := error(bridge.ErrNotSupported)
	if ok {
		region, err = i.Import(fd)
	}
	if err != nil {
		return nil, d.fail(opImport, 0, err)
	}
	return &Region{dev: d, region: region}, nil
}

// Bytes returns the memory; nil once the region is closed, or another host's.
func (r *Region) Bytes() []byte { return r.region.Bytes() }

// Close releases the region. Memory of Alloc is unmapped then: touching it may end the
// process. ErrBusy while a transfer or a window uses it, and the region stays as it was. It is
// idempotent.
func (r *Region) Close() error { return r.dev.fail(opCloseRegion, 0, r.region.Close()) }

//go:build linux

package vfio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/pci"
)

// Requests of the kernel's VFIO (linux/vfio.h). Their structs are laid out as in vfio-user.
const (
	vfioGetAPIVersion     = 0x3b64
	vfioCheckExtension    = 0x3b65
	vfioSetIOMMU          = 0x3b66
	vfioGroupGetStatus    = 0x3b67
	vfioGroupSetContainer = 0x3b68
	vfioGroupGetDeviceFD  = 0x3b6a
	vfioDeviceGetInfo     = 0x3b6b
	vfioDeviceRegionInfo  = 0x3b6c
	vfioDeviceSetIRQs     = 0x3b6e
	vfioDeviceReset       = 0x3b6f
	vfioIOMMUGetInfo      = 0x3b70
	vfioIOMMUMapDMA       = 0x3b71
	vfioIOMMUUnmapDMA     = 0x3b72
)

const (
	apiVersion  = 0
	type1v2     = 3      // VFIO_TYPE1v2_IOMMU
	groupViable = 1 << 0 // VFIO_GROUP_FLAGS_VIABLE
	irqRequest  = 4      // VFIO_PCI_REQ_IRQ_INDEX

	// pinUnit is how much memory is pinned at a time: all that the device can reach is.
	pinUnit = 4 << 20
)

// host is where a system has its PCI functions and its VFIO.
type host struct{ sys, dev string }

// system is the one this process runs on.
var system = host{sys: "/sys/bus/pci/devices", dev: "/dev/vfio"}

// owned is a function that the kernel gave to this process: nobody else has it, or another of its
// IOMMU group. It reaches memory that this process maps, and nothing else.
type owned struct {
	path      string
	group     *os.File
	container *os.File // the IOMMU's mappings
	device    *os.File
	request   *os.File // eventfd: the system wants the function back
	wanted    func()   // called then
	config    uint64   // offsets of regions in device
	registers uint64
	broken    atomic.Pointer[error] // why it is of no use any more
}

var _ bus = (*owned)(nil)

// call makes a request with a struct, and returns its result.
func call(f *os.File, request uintptr, payload []byte) (int, error) {
	return control(f, func(fd uintptr) (uintptr, syscall.Errno) {
		result, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(unsafe.SliceData(payload))))
		return result, errno
	})
}

// callValue makes a request with a number.
func callValue(f *os.File, request, value uintptr) (int, error) {
	return control(f, func(fd uintptr) (uintptr, syscall.Errno) {
		result, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, value)
		return result, errno
	})
}

// control calls a function with the descriptor of a file that stays open meanwhile.
func control(f *os.File, do func(fd uintptr) (uintptr, syscall.Errno)) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var result uintptr
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) { result, errno = do(fd) })
	if err == nil && errno != 0 {
		err = errno
	}
	return int(result), err
}

// take takes a function. Its error names the steps that the system's administrator has to do first.
// wanted is called from a goroutine when the system wants the function back.
func (h host) take(path string, wanted func()) (*owned, error) {
	number, err := h.groupOf(path)
	if err != nil {
		return nil, err
	}
	o := &owned{path: path, wanted: wanted}
	if err := o.open(h, number); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// groupOf returns the IOMMU group of a function that is VFIO's.
func (h host) groupOf(path string) (string, error) {
	folder := filepath.Join(h.sys, path)
	if _, err := os.Stat(folder); err != nil {
		return "", fmt.Errorf("no PCI function %s here: lspci lists them: %w", path, err)
	}
	driver, err := os.Readlink(filepath.Join(folder, "driver"))
	if err != nil || filepath.Base(driver) != "vfio-pci" {
		has := "no driver"
		if err == nil {
			has = "the driver " + filepath.Base(driver)
		}
		return "", fmt.Errorf("PCI function %s has %s: bind it to vfio-pci, with \"driverctl set-override %s vfio-pci\": %w",
			path, has, path, bridge.ErrNotSupported)
	}
	group, err := os.Readlink(filepath.Join(folder, "iommu_group"))
	if err != nil {
		return "", fmt.Errorf("PCI function %s is behind no IOMMU: enable it in the firmware and for the kernel, "+
			"with intel_iommu=on for Intel: %w", path, bridge.ErrNotSupported)
	}
	return filepath.Base(group), nil
}

func (o *owned) open(h host, number string) (err error) {
	if o.container, err = os.OpenFile(filepath.Join(h.dev, "vfio"), os.O_RDWR, 0); err != nil {
		return fmt.Errorf("VFIO: %w", err)
	}
	if v, err := call(o.container, vfioGetAPIVersion, nil); err != nil || v != apiVersion {
		return fmt.Errorf("%w: VFIO of version %d: %w", bridge.ErrABI, v, err)
	}
	if n, err := callValue(o.container, vfioCheckExtension, type1v2); err != nil || n != 1 {
		return fmt.Errorf("no IOMMU that VFIO can use: %w", errors.Join(bridge.ErrNotSupported, err))
	}
	o.group, err = os.OpenFile(filepath.Join(h.dev, number), os.O_RDWR, 0)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("another process has a function of IOMMU group %s: %w", number, bridge.ErrBusy)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("the function's user must own %s: %w", filepath.Join(h.dev, number), err)
	case err != nil:
		return fmt.Errorf("IOMMU group: %w", err)
	}
	return o.join(number)
}

// join joins the group to the container, and opens the function.
func (o *owned) join(number string) error {
	status := words(8, 0)
	if _, err := call(o.group, vfioGroupGetStatus, status); err != nil {
		return fmt.Errorf("IOMMU group %s: %w", number, err)
	}
	if order.Uint32(status[4:])&groupViable == 0 {
		return fmt.Errorf("IOMMU group %s has functions of other drivers: bind all to vfio-pci: %w", number, bridge.ErrNotSupported)
	}
	if _, err := call(o.group, vfioGroupSetContainer, words(uint32(o.container.Fd()))); err != nil {
		return fmt.Errorf("join IOMMU group %s: %w", number, err)
	}
	if _, err := callValue(o.container, vfioSetIOMMU, type1v2); err != nil {
		return fmt.Errorf("start the IOMMU: %w", err)
	}
	fd, err := call(o.group, vfioGroupGetDeviceFD, append([]byte(o.path), 0))
	if err != nil {
		return fmt.Errorf("open PCI function %s: %w", o.path, err)
	}
	o.device = os.NewFile(uintptr(fd), "vfio "+o.path)
	unix.CloseOnExec(fd)
	for index, to := range map[uint32]*uint64{regionConfig: &o.config, pci.BarRegisters: &o.registers} {
		at, err := o.region(index)
		if err != nil {
			return err
		}
		*to = at.offset
	}
	return o.watch()
}

// watch listens for the system's request to give the function back: it is removed, or bound to another
// driver, when this process has closed it.
func (o *owned) watch() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	o.request = os.NewFile(uintptr(fd), "nfcomms-request")
	if _, err := call(o.device, vfioDeviceSetIRQs, words(24, triggerByFile, irqRequest, 0, 1, uint32(fd))); err != nil {
		return fmt.Errorf("watch for removal: %w", err)
	}
	go func(f *os.File) {
		var count [8]byte
		if _, err := f.Read(count[:]); err == nil { // else it was closed
			o.wanted()
			_ = o.breaks(fmt.Errorf("%w: the system wants the function back", bridge.ErrDeviceLost))
		}
	}(o.request)
	return nil
}

// region describes a region of the function.
func (o *owned) region(index uint32) (place, error) {
	info := append(words(32, 0, index, 0), make([]byte, 16)...)
	if _, err := call(o.device, vfioDeviceRegionInfo, info); err != nil {
		return place{}, fmt.Errorf("region %d of the function: %w", index, err)
	}
	at := place{file: -1, size: order.Uint64(info[16:]), offset: order.Uint64(info[24:])}
	if order.Uint32(info[4:])&regionMap != 0 {
		at.file = int(o.device.Fd())
	}
	return at, nil
}

func (o *owned) mailboxes() (place, error) {
	at, err := o.region(pci.BarMailboxes)
	if err == nil && at.file < 0 {
		err = errUnmapped
	}
	if err != nil {
		return place{}, err
	}
	at.file, err = unix.FcntlInt(uintptr(at.file), unix.F_DUPFD_CLOEXEC, 0)
	return at, os.NewSyscallError("fcntl", err)
}

func (o *owned) check() error {
	info := words(24, 0, 0, 0, 0, 0)
	if _, err := call(o.device, vfioDeviceGetInfo, info); err != nil {
		return fmt.Errorf("describe the function: %w", err)
	}
	return checkInfo(info)
}

func (o *owned) reset() error {
	_, err := call(o.device, vfioDeviceReset, nil)
	return os.NewSyscallError("reset", err)
}

func (o *owned) at(region uint32) uint64 {
	if region == regionConfig {
		return o.config
	}
	return o.registers
}

func (o *owned) read(region uint32, offset uint64) (uint32, error) {
	var b [4]byte
	if why := o.broken.Load(); why != nil {
		return 0, *why
	}
	if _, err := o.device.ReadAt(b[:], int64(o.at(region)+offset)); err != nil {
		return 0, o.breaks(fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err))
	}
	return order.Uint32(b[:]), nil
}

func (o *owned) write(region uint32, offset uint64, b []byte) error {
	if why := o.broken.Load(); why != nil {
		return *why
	}
	if _, err := o.device.WriteAt(b, int64(o.at(region)+offset)); err != nil {
		return o.breaks(fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err))
	}
	return nil
}

func (o *owned) post(region uint32, offset uint64, v uint32) { _ = o.write(region, offset, words(v)) }

func (o *owned) interrupt(eventfd int) error {
	_, err := call(o.device, vfioDeviceSetIRQs, words(24, triggerByFile, irqMSIX, 0, 1, uint32(eventfd)))
	return err
}

// MapMemory pins memory, and has the IOMMU let the function reach it.
func (o *owned) MapMemory(m arena.Memory) error {
	payload := words(32, mapReadWrite)
	for _, v := range []uint64{m.Here, m.Bus, m.Size} {
		payload = order.AppendUint64(payload, v)
	}
	_, err := call(o.container, vfioIOMMUMapDMA, payload)
	if errors.Is(err, syscall.ENOMEM) {
		return fmt.Errorf("pin %d bytes: raise the limit of locked memory (ulimit -l, LimitMEMLOCK=): %w", m.Size, bridge.ErrNoMemory)
	}
	return os.NewSyscallError("map memory for the function", err)
}

// UnmapMemory ends that.
func (o *owned) UnmapMemory(m arena.Memory) {
	payload := words(24, 0)
	for _, v := range []uint64{m.Bus, m.Size} {
		payload = order.AppendUint64(payload, v)
	}
	_, _ = call(o.container, vfioIOMMUUnmapDMA, payload) // a function that was given back has none
}

// window returns the largest range of addresses that the IOMMU translates. Address 0 is no memory's.
func (o *owned) window() arena.Window {
	w := arena.Window{First: pinUnit, Last: 1<<32 - 1, Unit: pinUnit}
	info := words(4096, 0)
	info = append(info, make([]byte, 4096-len(info))...)
	if _, err := call(o.container, vfioIOMMUGetInfo, info); err != nil {
		return w
	}
	for _, r := range ranges(info) {
		if r[1]-r[0] > w.Last-w.First {
			w.First, w.Last = max(r[0], pinUnit), r[1]
		}
	}
	return w
}

// ranges reads the ranges of addresses in the description of an IOMMU: a chain of capabilities.
func ranges(info []byte) (all [][2]uint64) {
	const hasCapabilities, idRanges = 1 << 1, 1
	if order.Uint32(info[4:])&hasCapabilities == 0 {
		return nil
	}
	for at := uint64(order.Uint32(info[16:])); at > 0 && at+16 <= uint64(len(info)); {
		if next := uint64(order.Uint32(info[at+4:])); order.Uint16(info[at:]) != idRanges {
			if next <= at {
				return nil
			}
			at = next
			continue
		}
		for i := range int(order.Uint32(info[at+8:])) {
			if r := int(at) + 16 + 16*i; r+16 <= len(info) {
				all = append(all, [2]uint64{order.Uint64(info[r:]), order.Uint64(info[r+8:])})
			}
		}
		return all
	}
	return nil
}

// Alive reports whether the function can still be reached.
func (o *owned) Alive() bool { return o.broken.Load() == nil }

// breaks notes why the function is of no use any more, once, and returns why.
func (o *owned) breaks(why error) error {
	o.broken.CompareAndSwap(nil, &why)
	return *o.broken.Load()
}

// kick has nothing to hasten: the kernel answers by itself.
func (o *owned) kick(bool) {}

func (o *owned) kickAtEnd(context.Context) (undo func()) { return func() {} }

// close gives the function back. The kernel ends its DMA, resets it, and unpins memory.
func (o *owned) close() {
	_ = o.breaks(fmt.Errorf("device %w", bridge.ErrClosed))
	for _, f := range []*os.File{o.request, o.device, o.group, o.container} {
		if f != nil {
			_ = f.Close()
		}
	}
}

package card

/*
#cgo CFLAGS: -std=gnu11 -O2
#cgo LDFLAGS: -ldl -lpthread
#include "port/hosted.h"
*/
import "C"

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
)

func init() { bridge.Register("card", open) }

// open opens a device of an address such as "card:?islands=2&emem=1MiB".
func open(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
	shape, err := shapeOf(a)
	if err != nil {
		return nil, err
	}
	p := &port{epoch: 1}
	options := C.struct_nfc_hosted_options{engines: 1, epoch: 1, log_fd: -1}
	if rc := C.nfc_hosted_open(&shape, &options, &p.card); rc != 0 {
		return nil, fmt.Errorf("start the card: %w", bridge.Error(abi.Status(-rc)))
	}
	fd, err := syscall.Dup(int(C.nfc_hosted_doorbell(p.card)))
	if err != nil {
		p.stop()
		return nil, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(fd)
	p.doorbell = os.NewFile(uintptr(fd), "card-doorbell")
	info := bridge.Info{Address: a.String(), Driver: "card"}
	dev, err := mailbox.Open(ctx, p, info, &mailbox.Options{Logger: o.Logger})
	if err != nil {
		p.Close()
		return nil, err
	}
	return dev, nil
}

// shapeOf reads the shape of the card, which a real card would report itself.
func shapeOf(a bridge.Address) (C.struct_nfc_config, error) {
	shape := C.struct_nfc_config{eager: 4, runs: 1}
	timeout := time.Duration(0)
	numbers := map[string]*C.uint32_t{
		"channels": &shape.channels, "managers": &shape.managers, "islands": &shape.islands,
		"slots": &shape.slots, "window": &shape.window,
	}
	for key, values := range a.Options {
		var err error
		text := strings.NewReplacer("KiB", "*1024", "MiB", "*1048576", "GiB", "*1073741824").Replace(values[0])
		n, unit := 0, 1
		if key == "target-timeout" {
			timeout, err = time.ParseDuration(values[0])
		} else if _, err = fmt.Sscanf(text+"*1", "%d*%d", &n, &unit); err != nil {
			err = fmt.Errorf("%w: option %s", bridge.ErrInvalid, key)
		}
		switch {
		case err != nil:
			return shape, err
		case key == "emem":
			shape.memory[C.NFC_EMEM] = C.uint64_t(n * unit)
		case numbers[key] != nil:
			*numbers[key] = C.uint32_t(n)
		}
	}
	shape.target_timeout_ns = C.uint64_t(timeout.Nanoseconds())
	return shape, nil
}

// port is the mailbox manager's way to the card.
type port struct {
	mu       sync.RWMutex // guards the area against Restart
	card     *C.struct_nfc_hosted
	epoch    C.uint32_t
	doorbell *os.File
}

func (p *port) Area() (unsafe.Pointer, uint64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var size C.uint64_t
	area := C.nfc_hosted_area(p.card, &size)
	return area, uint64(size)
}

func (p *port) Ring(island int)      { C.nfc_hosted_ring(p.card, C.uint32_t(island)) }
func (p *port) Yield()               { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
func (p *port) Doorbell() *os.File   { return p.doorbell }
func (p *port) Assist() bool         { return C.nfc_hosted_assist(p.card) != 0 }
func (p *port) Unmap(uint64, uint64) {}
func (p *port) Fence()               { C.nfc_hosted_fence(p.card) }
func (p *port) Map(data []byte) (uint64, error) {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), nil
}

// Restart boots the next epoch of the card.
func (p *port) Restart(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left C.bool
	var who C.struct_nfc_computing
	p.epoch++
	return bridge.Error(abi.Status(-C.nfc_hosted_restart(p.card, p.epoch, &left, &who)))
}

func (p *port) stop() {
	var left C.bool
	var who C.struct_nfc_computing
	C.nfc_hosted_close(p.card, &left, &who)
}

func (p *port) Close() error {
	p.stop()
	return p.doorbell.Close()
}

//go:build cgo

package device

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// ServeDMA moves the bytes of client memory that has no file, by messages
// through conn, until stop is called.
func (d *Device) ServeDMA(conn *vfiouser.Conn) (stop func(), err error) {
	fd, err := unix.FcntlInt(uintptr(d.bus.RequestFile()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	bell := os.NewFile(uintptr(fd), "nfsim-requests")
	var serving sync.WaitGroup
	d.bus.Serve(true)
	serving.Go(func() {
		var count [8]byte
		for {
			if _, err := bell.Read(count[:]); err != nil {
				return
			}
			for r := d.bus.Request(); r != nil; r = d.bus.Request() {
				r.Done(moveBytes(conn, r, d.log))
			}
		}
	})
	return func() {
		bell.Close()
		serving.Wait()
		d.bus.Serve(false)
		for r := d.bus.Request(); r != nil; r = d.bus.Request() {
			r.Done(abi.ErrDMA)
		}
	}, nil
}

// moveBytes serves one request.
func moveBytes(conn *vfiouser.Conn, r *firmware.BusRequest, log *slog.Logger) abi.Status {
	move := conn.ReadDMA
	if r.Write {
		move = conn.WriteDMA
	}
	if err := move(r.Address, r.Memory); err != nil {
		if !errors.Is(err, syscall.ENOTCONN) {
			log.Warn("DMA through the socket", "err", err)
		}
		return abi.ErrDMA
	}
	return abi.OK
}

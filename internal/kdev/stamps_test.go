//go:build cgo

package kdev

import (
	"context"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/stamp"
)

// asked is a file that counts the operations that ask for times.
type asked struct {
	over
	stamped int
}

func (a *asked) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	if number == uapi.IOCSubmit {
		s := (*uapi.Submit)(argument)
		for _, o := range unsafe.Slice(*(**uapi.Op)(unsafe.Pointer(&s.Ops)), s.Count) {
			a.stamped += int(o.Flags & uapi.Stamped / uapi.Stamped)
		}
	}
	return a.over.ioctl(number, argument)
}

// TestStamps: of a call that is measured the module says when it did what, so that its layers are those
// of any other back end. A module of the first minor version does not, and is not asked.
func TestStamps(t *testing.T) {
	for minor, layers := range []bool{false, true} {
		m := newModule(t)
		m.uapi = uint32(uapi.UAPIMajor<<16 | minor)
		file := &asked{over: over{m.open()}}
		dev := openOn(t, file, "")
		ch, data := target(t, dev, "loopback"), make([]byte, 300_000)
		calls := 0
		call := func(d abi.Direction, indirect bool, do func(ctx context.Context) error) {
			var ctx stamp.Context
			ctx.Begin()
			require.NoError(t, do(ctx.Of(patience(t))))
			ctx.Record.Lap(stamp.Return)
			laps, wrong := ctx.Record.Split(stamp.Clock{}, d, indirect)
			require.False(t, wrong)
			calls++
			message := layers && d == abi.D2H && !indirect // the host's ACK has no answer
			require.True(t, !layers || laps[stamp.Device] == 0, "%d calls: %v", calls, laps)
			device := laps[stamp.Pickup] + laps[stamp.Target] + laps[stamp.DMA] + laps[stamp.Completion]
			require.Equal(t, layers, message || device > 0, "%d calls: %v", calls, laps)
		}
		for _, n := range []int{100, 4096, len(data)} {
			call(abi.H2D, false, func(ctx context.Context) error { return ch.Send(ctx, data[:9]) })
			call(abi.D2H, false, func(ctx context.Context) error { _, err := ch.Receive(ctx, data); return err })
			call(abi.H2D, true, func(ctx context.Context) error { return ch.SendInd(ctx, data[:n]) })
			call(abi.D2H, true, func(ctx context.Context) error { return ch.ReceiveInd(ctx, data[:n]) })
		}
		require.NoError(t, ch.Send(patience(t), nil), "nobody measures it")
		require.Equal(t, map[bool]int{true: calls}[layers], file.stamped)
		require.NoError(t, dev.Close())
	}
}

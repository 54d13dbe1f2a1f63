//go:build cgo

package kdev

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// failing is a node one of whose ioctls fails, once, before the module sees it.
type failing struct {
	kernel
	calls, at atomic.Int64
	errno     syscall.Errno
}

func (f *failing) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	if f.calls.Add(1) == f.at.Load() {
		return f.errno
	}
	return f.kernel.ioctl(number, argument)
}

func (f *failing) struck() bool { return f.calls.Load() >= f.at.Load() }

// typed requires an error with a sentinel or an errno.
func (f *failing) typed(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := bridge.StatusOf(err); !ok && !errors.Is(err, f.errno) {
		require.NoError(t, err, "%s: an error without a name", what)
	}
}

// session makes every call of a device; each may fail once, and then works.
func (f *failing) session(t *testing.T) {
	failed := false
	again := func(what string, call func() error) {
		t.Helper()
		err := call()
		if err == nil {
			return
		}
		require.False(t, failed, "%s fails as well: %v", what, err)
		require.True(t, f.struck(), "%s: %v", what, err)
		f.typed(t, what, err)
		failed = true
		require.NoError(t, call(), "%s, again", what)
	}
	var dev *Device
	again("open", func() (err error) { dev, err = tryOpen(f, ""); return err })
	ctx := patience(t)
	var echo, hold bridge.Process
	again("start", func() (err error) {
		echo, err = dev.Start(ctx, bridge.Program{Name: "loopback", Targets: 1})
		return err
	})
	again("start", func() (err error) {
		hold, err = dev.Start(ctx, bridge.Program{Name: "hold", Targets: 1})
		return err
	})
	var ch, held bridge.Channel
	again("subscribe", func() (err error) { ch, err = dev.Subscribe(ctx, echo.First); return err })
	again("subscribe", func() (err error) { held, err = dev.Subscribe(ctx, hold.First); return err })
	buf, back := make([]byte, 10_000), make([]byte, 10_000)
	again("send", func() error { return ch.Send(ctx, buf[:56]) })
	again("receive", func() error { _, err := ch.Receive(ctx, back); return err })
	again("send transfer", func() error { return ch.SendInd(ctx, buf) })
	again("receive transfer", func() error { return ch.ReceiveInd(ctx, back) })
	withdrawn(t, f, dev, held)
	again("health", func() error { _, err := dev.Health(); return err })
	again("arm", func() error { return held.Arm(abi.D2H, make(chan struct{}, 1)) })
	again("stop", func() error {
		err := dev.Stop(ctx, hold.ID)
		if errors.Is(err, bridge.ErrBusy) {
			err = nil
		}
		return err
	})
	again("reset", func() error { return dev.Reset(ctx) })
	require.ErrorIs(t, ch.Send(ctx, nil), bridge.ErrDeviceLost)
	_ = dev.Stats()
	require.NoError(t, dev.Close())
}

// withdrawn requires that a call to a target that never reads ends with its
// context, whatever fails.
func withdrawn(t *testing.T, f *failing, dev *Device, held bridge.Channel) {
	ctx, cancel := context.WithCancel(patience(t))
	sent := make(chan error, 1)
	go func() { sent <- held.Send(ctx, nil) }()
	for len(sent) == 0 && dev.Stats().Blocked == 0 {
		continue
	}
	cancel()
	err := <-sent
	require.Error(t, err)
	f.typed(t, "withdrawn send", err)
}

// TestEveryIoctlFailsOnce: for n = 1, 2, … the nth ioctl of a session fails with
// each errno in turn. The call returns it by name and works when it is made again.
func TestEveryIoctlFailsOnce(t *testing.T) {
	points := 0
	m := newModule(t)
	for _, errno := range []syscall.Errno{
		syscall.ENOMEM, syscall.EAGAIN, syscall.EFAULT, syscall.EIO, syscall.EPERM, syscall.EBUSY,
	} {
		for n := int64(1); ; n++ {
			f := &failing{kernel: m.open(), errno: errno}
			f.at.Store(n)
			f.session(t)
			if !f.struck() {
				break
			}
			points++
		}
	}
	t.Logf("%d ioctls failed, one in each session", points)
	require.Greater(t, points, 6*15)
}

// TestReadFails: when completions cannot be read any more every call ends, also
// those that are made afterwards and that the module would take.
func TestReadFails(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENODEV, syscall.EIO, syscall.EFAULT, syscall.ENOMEM} {
		m := newModule(t)
		f := m.open()
		dev := openOn(t, f, "")
		ch, ctx := target(t, dev, "loopback"), patience(t)
		received := make(chan error, 1)
		go func() { _, err := ch.Receive(ctx, make([]byte, 56)); received <- err }()
		blocked(t, dev, 1)
		f.unplug(errno)
		require.ErrorIs(t, <-received, bridge.ErrDeviceLost)
		for range 3 {
			require.ErrorIs(t, ch.Send(ctx, nil), bridge.ErrDeviceLost)
			require.ErrorIs(t, ch.SendInd(ctx, make([]byte, 100)), bridge.ErrDeviceLost)
			_, err := dev.Subscribe(ctx, abi.TargetLoopback)
			require.ErrorIs(t, err, bridge.ErrDeviceLost)
		}
		require.NoError(t, dev.Close())
	}
}

// TestCompletionsNobodyAskedFor: twice, of the past, of the future, of no
// operation: they end nothing but what they name, once.
func TestCompletionsNobodyAskedFor(t *testing.T) {
	m := newModule(t)
	f := m.open()
	dev := openOn(t, f, "")
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	ch, ctx := target(t, dev, "loopback"), patience(t)
	for i := range uint64(200) {
		for _, data := range []uint64{i, i<<32 | 1<<20, 1<<63 | i<<32, ^uint64(0) - i} { // no use is 0
			f.post(uapi.Completion{UserData: data, Opcode: uint16(i), Status: uint32(i)})
		}
		require.NoError(t, ch.Send(ctx, []byte{byte(i)}))
		var back [56]byte
		n, err := ch.Receive(ctx, back[:])
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, back[:n])
	}
}

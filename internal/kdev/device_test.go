//go:build cgo

package kdev

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/logqueue"
)

// patience ends a test that hangs.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// opened is a device over a file of m, closed with the test.
func opened(t *testing.T, m *fakeModule) *Device {
	dev := openOn(t, m.open(), "")
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// target starts a program and subscribes its first port.
func target(t *testing.T, dev bridge.Device, program string) bridge.Channel {
	t.Helper()
	p, err := dev.Start(patience(t), bridge.Program{Name: program, Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(patience(t), p.First)
	require.NoError(t, err)
	return ch
}

// blocked waits until n calls wait.
func blocked(t *testing.T, dev bridge.Device, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return dev.Stats().Blocked >= n }, time.Minute, 100*time.Microsecond)
}

// TestOtherInterface: a module of another version is refused.
func TestOtherInterface(t *testing.T) {
	m := newModule(t)
	m.uapi = (uapi.UAPIMajor + 1) << 16
	f := m.open()
	_, err := tryOpen(f, "")
	require.ErrorIs(t, err, bridge.ErrABI)
	require.ErrorContains(t, err, "interface 4.0, this program 3.1")
	require.NoError(t, f.close())
	m.uapi = 1<<16 | 1 // the interface before
	f = m.open()
	_, err = tryOpen(f, "")
	require.ErrorIs(t, err, bridge.ErrABI)
	require.NoError(t, f.close())
}

// TestFirstInterface: a module of version 3.0 has no questions, so a call sends.
func TestFirstInterface(t *testing.T) {
	m := newModule(t)
	m.uapi = uapi.UAPIMajor << 16
	dev := opened(t, m)
	ch, err := dev.Subscribe(patience(t), abi.TargetLoopback)
	require.NoError(t, err)
	a, err := ch.(bridge.Caller).Call(patience(t), []byte("question"), nil)
	require.NoError(t, err)
	require.True(t, a.Message)
	buf := make([]byte, abi.PayloadSize)
	n, err := ch.Receive(patience(t), buf)
	require.NoError(t, err)
	require.Equal(t, "question", string(buf[:n]))
}

// TestRights: the error of an operation that the module refuses for want of a right names it.
func TestRights(t *testing.T) {
	dev := opened(t, newModule(t))
	for errno, says := range map[syscall.Errno]string{syscall.EPERM: "CAP_SYS_ADMIN", syscall.EACCES: "open to read only"} {
		err := dev.refused(&op{}, errno)
		require.ErrorIs(t, err, os.ErrPermission)
		require.NotErrorIs(t, err, bridge.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	err := dev.refused(&op{}, syscall.EDQUOT)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.ErrorContains(t, err, "lost three times in ten minutes")
}

// TestResetErrors: what a reset may be refused for, at Open and later.
func TestResetErrors(t *testing.T) {
	m := newModule(t)
	dev := opened(t, m)
	ch := target(t, dev, "loopback")
	for errno, c := range map[syscall.Errno]struct {
		is   error
		says string
	}{
		syscall.EPERM:  {os.ErrPermission, "CAP_SYS_ADMIN"},
		syscall.EINVAL: {bridge.ErrInvalid, "shape"},
		syscall.E2BIG:  {bridge.ErrTooLarge, "do not fit"},
		syscall.ENODEV: {bridge.ErrDeviceLost, "removed"},
		syscall.EIO:    {bridge.ErrDeviceLost, "input/output"},
	} {
		m.resetting = errno
		f := m.open()
		_, err := tryOpen(f, "channels=100")
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
		require.NoError(t, f.close())
		require.ErrorIs(t, dev.Reset(patience(t)), c.is)
	}
	require.NoError(t, ch.Send(patience(t), []byte("nothing happened")))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m.resetting = 0
	require.ErrorIs(t, dev.Reset(ctx), context.Canceled)
	require.NoError(t, ch.CloseSend())
}

// TestMemlock: the error names the limit, what was asked, and what to do.
func TestMemlock(t *testing.T) {
	m := newModule(t)
	m.memlock = 1 << 20
	dev := opened(t, m)
	ch := target(t, dev, "sink")
	err := ch.SendInd(patience(t), make([]byte, 3<<20))
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.ErrorIs(t, err, syscall.ENOMEM)
	for _, says := range []string{"pin 3145728 bytes", "limit of locked memory is 1048576 bytes", "RLIMIT_MEMLOCK", `"ulimit -l"`, "LimitMEMLOCK="} {
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, ch.SendInd(patience(t), make([]byte, 1<<20)), "what fits still goes")
	o := &op{raw: uapi.Op{Length: 4096, Address: 4096}, got: uapi.Completion{Error: uint32(syscall.ENOMEM)}}
	err = dev.refused(o, syscall.ENOMEM)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.NotContains(t, err.Error(), "ulimit", "it was the machine, not the limit")
}

// TestRefused: what the module refuses, by errno.
func TestRefused(t *testing.T) {
	m := newModule(t)
	dev := opened(t, m)
	ch := target(t, dev, "hold")
	h := &ch.(*Channel).halves[abi.H2D]
	for errno, c := range map[syscall.Errno]struct {
		is   error
		says string
	}{
		syscall.EFAULT: {bridge.ErrDMA, "4096 bytes at 0x1000"},
		syscall.EAGAIN: {bridge.ErrNoMemory, "in flight"},
		syscall.EINVAL: {bridge.ErrInvalid, "invalid argument"},
		syscall.ENODEV: {bridge.ErrDeviceLost, "removed"},
		syscall.ENOENT: {bridge.ErrDeviceLost, "reset"},
	} {
		o := &op{raw: uapi.Op{Address: 4096, Length: 4096}, got: uapi.Completion{Error: uint32(errno)}}
		err := h.outcome(context.Background(), o, nil)
		require.ErrorIs(t, err, c.is, "%v", errno)
		require.ErrorContains(t, err, c.says)
	}
	require.NoError(t, ch.Close())
	o := &op{got: uapi.Completion{Error: uint32(syscall.ENOENT)}}
	require.ErrorIs(t, h.outcome(context.Background(), o, nil), bridge.ErrClosed, "closed here, so the handle is gone")
}

// TestOutcome walks the statuses a completion may have.
func TestOutcome(t *testing.T) {
	h := &newChannel(&Device{log: nil}, 1, 17).halves[abi.H2D]
	of := func(c uapi.Completion, cause error) error {
		c.Opcode = uapi.OpSendInd
		return h.outcome(context.Background(), &op{raw: uapi.Op{Length: 100}, got: c}, cause)
	}
	for s := abi.OK; s < abi.StatusCount; s++ {
		require.ErrorIs(t, of(uapi.Completion{Status: uint32(s)}, nil), bridge.Error(s), "status %d", s)
	}
	require.ErrorIs(t, of(uapi.Completion{Status: 1 << 20}, nil), bridge.ErrProtocol)
	withdrawn := &bridge.WithdrawnError{Cause: context.Canceled}
	for _, s := range []abi.Status{abi.ErrWithdrawn, abi.ErrAborted} {
		require.Equal(t, error(withdrawn), of(uapi.Completion{Status: uint32(s)}, withdrawn))
		err := of(uapi.Completion{Status: uint32(s), Processed: 60, Outstanding: 40, List: 2, Entry: 3}, withdrawn)
		require.Equal(t, &bridge.TransferError{Processed: 60, Outstanding: 40, List: 2, Entry: 3, Err: withdrawn}, err)
	}
	require.NoError(t, of(uapi.Completion{}, withdrawn), "it took effect before")
	require.ErrorIs(t, of(uapi.Completion{Status: uint32(abi.ErrReset)}, withdrawn), bridge.ErrDeviceLost)
	var dma *bridge.TransferError
	require.ErrorAs(t, of(uapi.Completion{Status: uint32(abi.ErrDMA)}, nil), &dma, "also when nothing moved")
	begun := of(uapi.Completion{Error: uint32(syscall.EFAULT), Status: uint32(abi.ErrInvalid), Outstanding: 100}, nil)
	require.ErrorAs(t, begun, &dma, "a page that could not be pinned while the transfer ran")
	require.ErrorIs(t, begun, bridge.ErrDMA)
	require.NotErrorAs(t, of(uapi.Completion{Error: uint32(syscall.EFAULT), Status: uint32(abi.ErrInvalid)}, nil), &dma, "before it began")
	var size *bridge.SizeError
	require.ErrorAs(t, of(uapi.Completion{Status: uint32(abi.ErrSize), PeerSize: 99}, nil), &size)
	require.Equal(t, bridge.SizeError{Host: 100, Device: 99}, *size)
	o := &op{got: uapi.Completion{Opcode: uapi.OpSendInd, Status: uint32(abi.ErrTimeout)}}
	late, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	require.ErrorIs(t, h.outcome(late, o, nil), bridge.ErrWithdrawn, "the device kept the context's time")
	early, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	require.ErrorIs(t, h.outcome(early, o, nil), bridge.ErrTargetTimeout)
	require.NotErrorIs(t, h.outcome(early, o, nil), bridge.ErrWithdrawn, "the device kept a time of its own")
}

// TestFilesAreIsolated: what one file does, another does not see; what it
// started ends with it.
func TestFilesAreIsolated(t *testing.T) {
	m := newModule(t)
	one, two := openOn(t, m.open(), ""), opened(t, m)
	ctx := patience(t)
	p, err := one.Start(ctx, bridge.Program{Name: "loopback", Targets: 1})
	require.NoError(t, err)
	ch, err := one.Subscribe(ctx, p.First)
	require.NoError(t, err)
	_, err = two.Subscribe(ctx, p.First)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.ErrorIs(t, two.Stop(ctx, p.ID), bridge.ErrInvalid)
	mine := target(t, two, "loopback")
	require.NoError(t, ch.Send(ctx, []byte("one")))
	require.Equal(t, 1, two.Stats().Channels)
	require.NoError(t, one.Close())
	_, err = two.Subscribe(ctx, p.First)
	require.ErrorIs(t, err, bridge.ErrNotSubscribed, "its process ended")
	require.NoError(t, mine.Send(ctx, []byte("two")), "the other file goes on")
	require.ErrorIs(t, ch.Send(ctx, nil), bridge.ErrClosed)
}

// TestResetByAnother: a reset that another file makes ends the calls and the
// channels of this one, and nothing else.
func TestResetByAnother(t *testing.T) {
	m := newModule(t)
	dev, other := opened(t, m), opened(t, m)
	ch, ctx := target(t, dev, "hold"), patience(t)
	wake := make(chan struct{}, 1)
	require.NoError(t, ch.Arm(abi.D2H, wake))
	sent := make(chan error, 1)
	go func() { sent <- ch.Send(ctx, nil) }()
	blocked(t, dev, 1)
	epoch := dev.Info().Epoch
	require.Equal(t, fakeVersion, dev.Info().DriverVersion)
	require.NoError(t, other.Reset(ctx))
	require.Equal(t, epoch+1, dev.Info().Epoch)
	require.ErrorIs(t, <-sent, bridge.ErrDeviceLost)
	<-wake
	require.ErrorIs(t, ch.Send(ctx, nil), bridge.ErrDeviceLost)
	require.EqualValues(t, 1, dev.Stats().Resets)
	require.NoError(t, ch.Close())
	require.Zero(t, dev.Stats().Channels)
	require.NoError(t, target(t, dev, "loopback").Send(ctx, []byte("again")))
}

// TestRemoval: when no completion can arrive any more, every call ends.
func TestRemoval(t *testing.T) {
	m := newModule(t)
	f := m.open()
	dev := openOn(t, f, "")
	ch, ctx := target(t, dev, "hold"), patience(t)
	var calls sync.WaitGroup
	calls.Go(func() { require.ErrorIs(t, ch.Send(ctx, nil), bridge.ErrDeviceLost) })
	calls.Go(func() { require.ErrorIs(t, ch.ReceiveInd(ctx, make([]byte, 9)), bridge.ErrDeviceLost) })
	blocked(t, dev, 2)
	f.unplug(syscall.ENODEV)
	calls.Wait()
	require.NoError(t, dev.Close())
}

// spy lets a test look at, and hold up, what goes to the module.
type spy struct {
	kernel
	submit func(*uapi.Submit)
}

func (s *spy) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	if number == uapi.IOCSubmit && s.submit != nil {
		s.submit((*uapi.Submit)(argument))
	}
	return s.kernel.ioctl(number, argument)
}

// TestSubmitTogether: while one submission is under way others gather and go
// together; one that the module refuses does not touch the rest.
func TestSubmitTogether(t *testing.T) {
	const senders = 40
	s := &spy{kernel: newModule(t).open()}
	dev := openOn(t, s, "")
	ctx := patience(t)
	p, err := dev.Start(ctx, bridge.Program{Name: "hold", Targets: senders})
	require.NoError(t, err)
	channels := make([]bridge.Channel, senders)
	for i := range channels {
		channels[i], err = dev.Subscribe(ctx, p.First+bridge.Target(i))
		require.NoError(t, err)
	}
	lost := channels[senders/2].(*Channel)
	lost.handle = 1 << 20 // the module does not know it
	var counts []uint32
	first, proceed := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	s.submit = func(c *uapi.Submit) {
		counts = append(counts, c.Count)
		if once.CompareAndSwap(false, true) {
			close(first)
			<-proceed
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	var refused atomic.Int32
	send := func(ch bridge.Channel) func() {
		return func() {
			err := ch.Send(ctx, nil)
			if ch == lost {
				refused.Add(1)
				require.ErrorIs(t, err, bridge.ErrDeviceLost)
				return
			}
			require.ErrorIs(t, err, bridge.ErrWithdrawn)
		}
	}
	calls.Go(send(channels[0]))
	<-first
	for _, ch := range channels[1:] {
		calls.Go(send(ch))
	}
	require.Eventually(t, func() bool {
		dev.sub.mu.Lock()
		defer dev.sub.mu.Unlock()
		return len(dev.sub.queue) == senders-1
	}, time.Minute, 100*time.Microsecond)
	close(proceed)
	blocked(t, dev, senders-1)
	cancel()
	calls.Wait()
	require.EqualValues(t, 1, refused.Load())
	require.Equal(t, uint32(1), counts[0])
	require.Equal(t, uint32(senders-1), counts[1], "all that had gathered")
	require.LessOrEqual(t, len(counts), 3, "and the rest after the one that was refused")
	s.submit = nil
	require.NoError(t, dev.Close())
}

// TestTooMany: a full file refuses with an error of its own, and can be closed.
func TestTooMany(t *testing.T) {
	dev := opened(t, boundModule(t, 2))
	ch, ctx := target(t, dev, "hold"), patience(t)
	errs := make(chan error, 2)
	go func() { errs <- ch.Send(ctx, nil) }()
	go func() { _, err := ch.Receive(ctx, nil); errs <- err }()
	blocked(t, dev, 2)
	err := ch.SendInd(ctx, nil)
	require.ErrorIs(t, err, syscall.EAGAIN)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.NoError(t, ch.Close())
	require.ErrorIs(t, <-errs, bridge.ErrClosed)
	require.ErrorIs(t, <-errs, bridge.ErrClosed)
}

// TestPanicKeepsTheOffer: a function that panics decides nothing.
func TestPanicKeepsTheOffer(t *testing.T) {
	dev := opened(t, newModule(t))
	ch, ctx := target(t, dev, "loopback"), patience(t)
	require.NoError(t, ch.Send(ctx, []byte("kept")))
	require.Panics(t, func() { _ = ch.ReceiveFunc(ctx, func([]byte) error { panic("no") }) })
	var buf [8]byte
	n, err := ch.Receive(ctx, buf[:])
	require.NoError(t, err)
	require.Equal(t, "kept", string(buf[:n]))
}

// TestEndsWaitForFunctions: a close, and a reset, return after the function that
// works in an extended rendezvous.
func TestEndsWaitForFunctions(t *testing.T) {
	ctx := patience(t)
	for what, end := range map[string]func(*Device, bridge.Channel) error{
		"channel": func(_ *Device, ch bridge.Channel) error { return ch.Close() },
		"half":    func(_ *Device, ch bridge.Channel) error { return ch.CloseReceive() },
		"device":  func(dev *Device, _ bridge.Channel) error { return dev.Close() },
		"reset":   func(dev *Device, _ bridge.Channel) error { return dev.Reset(ctx) },
	} {
		dev := opened(t, newModule(t))
		ch := target(t, dev, "loopback")
		require.NoError(t, ch.Send(ctx, []byte("x")))
		inside, leave, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		received := make(chan error, 1)
		go func() {
			received <- ch.ReceiveFunc(ctx, func([]byte) error {
				close(inside)
				<-leave
				return nil
			})
		}()
		<-inside
		go func() { over <- end(dev, ch) }()
		half := &ch.(*Channel).halves[abi.D2H]
		require.Eventually(t, func() bool { return half.gate.why() != 0 }, time.Minute, time.Millisecond, what)
		require.Empty(t, over, what)
		close(leave)
		require.NoError(t, <-over, what)
		if err := <-received; err != nil {
			require.True(t, isGone(err), "%s: %v", what, err)
		}
	}
}

// TestAlienCompletion: a completion of no operation is said and dropped.
func TestAlienCompletion(t *testing.T) {
	var log bytes.Buffer
	f := newModule(t).open()
	where, err := parseText(t, "dev:0")
	require.NoError(t, err)
	dev, err := newDevice(f, where, &bridge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	f.post(uapi.Completion{UserData: 1<<40 | 7})
	f.post(uapi.Completion{UserData: 0})
	require.NoError(t, target(t, dev, "loopback").Send(patience(t), nil), "after them")
	require.NoError(t, dev.Close())
	require.Equal(t, 2, strings.Count(log.String(), "completion of no operation"))
}

// TestLossIsSaidOnce: the log hears of a device that is out of use, not of every
// call that fails for it.
func TestLossIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	d := &Device{log: logqueue.New(slog.New(slog.NewTextHandler(&log, nil)))}
	for range 3 {
		require.ErrorIs(t, d.statusErr(abi.ErrFault), bridge.ErrFault)
		require.ErrorIs(t, d.statusErr(abi.ErrBusy), bridge.ErrBusy)
	}
	d.log.Flush()
	require.Equal(t, 1, strings.Count(log.String(), "device out of use until reset"))
}

// TestHealthStates: each state of the module is an error of its own.
func TestHealthStates(t *testing.T) {
	require.NoError(t, stateErr(uapi.StateReady))
	for state, is := range map[uapi.State]error{
		uapi.StateFault: bridge.ErrFault, uapi.StateLost: bridge.ErrDeviceLost,
		uapi.StateResetting: bridge.ErrDeviceLost, uapi.StateRemoved: bridge.ErrDeviceLost,
	} {
		require.ErrorIs(t, stateErr(state), is)
	}
	require.False(t, errors.Is(stateErr(uapi.StateLost), bridge.ErrFault))
}

// TestInfoDescribesTheCard: what sysfs says of it, and the module of its interrupts.
func TestInfoDescribesTheCard(t *testing.T) {
	m := newModule(t)
	require.Nil(t, opened(t, m).Info().Board, "the fake's device is no card")
	m.dir = sysfsOf(t, map[string]string{"resource": emulated})
	dev := opened(t, m)
	require.Equal(t, 1, dev.Info().Board.Vectors)
	require.Len(t, dev.Info().Board.Bars, 4)
	require.NoError(t, dev.Reset(patience(t)))
	require.NotNil(t, dev.Info().Board)
}

//go:build cgo

package nfcomms

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// openSim returns a device of its own in this process.
func openSim(t testing.TB, address string) *Device {
	dev, err := Open(background(t), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// startSim runs a program and returns the channels to its ports.
func startSim(t testing.TB, dev *Device, program string, ports int) []*Channel {
	p, err := dev.Start(background(t), Program{Name: program, Targets: ports})
	require.NoError(t, err)
	chs := make([]*Channel, ports)
	for i := range chs {
		chs[i], err = dev.Subscribe(background(t), p.First+Target(i))
		require.NoError(t, err)
	}
	return chs
}

func TestSimOpenRefuses(t *testing.T) {
	refusesToOpen(t, map[string]error{
		"sim:?colour=red":            ErrOption,
		"sim:?managers=8&managers=8": ErrOption,
		"sim:?managers=many":         ErrInvalid,
		"sim:/a/path":                ErrInvalid,
		"sim:?slots=1000":            ErrInvalid,
	})
}

// TestSimRefuses is the table of bad input, with a real back end below.
func TestSimRefuses(t *testing.T) {
	dev := openSim(t, "sim:")
	loop := startSim(t, dev, "loopback", 1)[0]
	at := loop.Target()
	source := startSim(t, dev, "source", 1)[0]
	buf := make([]byte, 64)
	subscribe := func(target Target) func(context.Context) error {
		return func(ctx context.Context) error { _, err := dev.Subscribe(ctx, target); return err }
	}
	noProgram := filepath.Join(t.TempDir(), "not-a-program.so")
	require.NoError(t, os.WriteFile(noProgram, []byte("not an object"), 0o600))
	_, err := dev.LoadFile(background(t), noProgram)
	require.Error(t, err)
	for _, w := range []wants{
		{"no target", opSubscribe, 9999, subscribe(9999), ErrNotSubscribed},
		{"beyond all targets", opSubscribe, 1 << 24, subscribe(1 << 24), ErrNotSubscribed},
		{"control channel", opSubscribe, 0, subscribe(0), ErrNotSubscribed},
		{"subscribed twice", opSubscribe, at, subscribe(at), ErrBusy},
		{"no program", opStart, 0, func(ctx context.Context) error {
			_, err := dev.Start(ctx, Program{Name: "nothing", Targets: 1})
			return err
		}, ErrNoProgram},
		{"target taken", opStart, at, func(ctx context.Context) error {
			_, err := dev.Start(ctx, Program{Name: "sink", First: at, Targets: 1})
			return err
		}, ErrBusy},
		{"no process", opStop, 0, func(ctx context.Context) error { return dev.Stop(ctx, 1<<40) }, ErrInvalid},
		{"no memory type", opMemory, 0, func(ctx context.Context) error {
			_, err := dev.memory(ctx, 4)
			return err
		}, ErrInvalid},
		{"message over 56 bytes", opSend, at, func(ctx context.Context) error {
			return loop.Send(ctx, make([]byte, 57))
		}, ErrTooLarge},
		{"buffer shorter than size", opSendInd, at, func(ctx context.Context) error {
			return loop.SendInd(ctx, buf, 65)
		}, ErrSize},
		{"pointers", opSendInd, at, func(ctx context.Context) error {
			return loop.SendInd(ctx, &order{}, 1)
		}, ErrPointers},
		{"a transfer where a message is read", opSendInd, source.Target(), func(ctx context.Context) error {
			return source.SendInd(ctx, buf, 64)
		}, ErrKindMismatch},
		{"short buffer for a message", opReceive, at, func(ctx context.Context) error {
			require.NoError(t, loop.Send(ctx, buf[:10]))
			_, err := loop.Receive(ctx, buf[:9])
			return err
		}, ErrTooLarge},
	} {
		w.check(t, "sim:")
	}
	// None of it lost the message that was offered last.
	n, err := loop.Receive(background(t), buf)
	require.NoError(t, err)
	assert.Equal(t, 10, n)
}

func TestSimSizesDiffer(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	require.NoError(t, ch.SendInd(ctx, make([]byte, 100), 100))
	_, err := ch.ReceiveInd(ctx, make([]byte, 64), 64)
	var size *SizeError
	require.ErrorAs(t, err, &size)
	require.ErrorIs(t, err, ErrSizeMismatch)
	assert.Equal(t, SizeError{Host: 64, Device: 100}, *size)
	n, err := ch.ReceiveInd(ctx, make([]byte, 100), 100)
	require.NoError(t, err, "it is still there for the right receive")
	assert.Equal(t, 100, n)
}

// TestSimReceiveIndFuncTakesMemoryLate: no memory is taken for a transfer that nobody
// offers, nor for one of another size.
func TestSimReceiveIndFuncTakesMemoryLate(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	const huge = 60 << 30
	never := func([]byte) error { panic("nobody sent that much") }
	waiting, cancel := context.WithCancel(ctx)
	end := running(t, func() error {
		err := ch.ReceiveIndFunc(waiting, huge, never)
		if errors.Is(err, ErrWithdrawn) {
			return nil
		}
		return err
	})
	cancel()
	end()
	require.NoError(t, ch.SendInd(ctx, make([]byte, 100)))
	err := ch.ReceiveIndFunc(ctx, huge, never)
	var size *SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, SizeError{Host: huge, Device: 100}, *size)
	require.NoError(t, ch.ReceiveIndFunc(ctx, 100, func(data []byte) error {
		require.Len(t, data, 100)
		return nil
	}))
}

func TestSimSecondReceiver(t *testing.T) {
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	first := make(chan error, 1)
	go func() { _, err := ch.Receive(ctx, nil); first <- err }()
	// One of the two holds the half, so the other is refused.
	second := make(chan error, 1)
	go func() { _, err := ch.Receive(ctx, nil); second <- err }()
	select {
	case err := <-first:
		require.ErrorIs(t, err, ErrBusy)
		cancel()
		require.ErrorIs(t, <-second, ErrWithdrawn)
	case err := <-second:
		require.ErrorIs(t, err, ErrBusy)
		cancel()
		require.ErrorIs(t, <-first, ErrWithdrawn)
	}
}

func TestSimClose(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	ch := startSim(t, dev, "hold", 1)[0]
	pending := make(chan error, 3)
	go func() { pending <- ch.Send(ctx, []byte("x")) }()
	go func() { _, err := ch.ReceiveInd(ctx, make([]byte, 8), 8); pending <- err }()
	go func() { pending <- ch.SendInd(ctx, make([]byte, 1<<20), 1<<20) }()
	require.NoError(t, ch.Close())
	for range 3 {
		require.ErrorIs(t, <-pending, ErrClosed)
	}
	require.NoError(t, ch.Close())
	require.NoError(t, dev.Close())
	require.NoError(t, dev.Close())
	_, err := dev.Subscribe(ctx, Loopback)
	require.ErrorIs(t, err, ErrClosed)
}

func TestSimEveryKindOfObject(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	back := make([]byte, 64)
	local := [4]uint32{1, 2, 3, 4}
	for _, data := range []any{
		[]byte("bytes"), "string", int64(-5), complex(1, 2), 3.5, true, point{1, -2}, [3]int16{1, 2, 3},
		[]float64{1, 2}, []celsius{4}, []point{{1, 2}, {3, 4}}, onHeap(uint16(9)), onHeap(point{5, 6}), &local,
	} {
		o, err := objectOf(data)
		require.NoError(t, err)
		size := len(o.mem)
		require.NoError(t, ch.SendInd(ctx, data, size), "%T", data)
		n, err := ch.ReceiveInd(ctx, back, size)
		require.NoError(t, err, "%T", data)
		require.Equal(t, o.mem, back[:n], "%T", data)
	}
	require.NoError(t, ch.SendInd(ctx, back, 0))
	n, err := ch.ReceiveInd(ctx, back, 0)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestSimTryAndSelect(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	hold, loop := startSim(t, dev, "hold", 1)[0], startSim(t, dev, "loopback", 1)[0]
	ok, err := SendCase(hold, []byte("x")).Try()
	require.NoError(t, err)
	require.False(t, ok)
	buf, n := make([]byte, MessageSize), 0
	i, err := Select(ctx, SendCase(hold, []byte("x")), ReceiveCase(hold, buf, nil), Default())
	require.NoError(t, err)
	require.Equal(t, 2, i)
	i, err = Select(ctx, SendCase(hold, []byte("x")), SendCase(loop, []byte("taken")))
	require.NoError(t, err)
	require.Equal(t, 1, i)
	i, err = Select(ctx, ReceiveCase(hold, buf, nil), ReceiveCase(loop, buf, &n))
	require.NoError(t, err)
	require.Equal(t, 1, i)
	require.Equal(t, "taken", string(buf[:n]))
}

// TestSimSelectLedger sends and receives by Select alone, with contexts that end
// at random, and compares the ledgers of both ends.
func TestSimSelectLedger(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	sink := startSim(t, dev, "sink", 1)[0]
	flood := startSim(t, dev, "flood", 1)[0]
	const offered = 500
	order := binary.LittleEndian.AppendUint64(nil, offered)
	require.NoError(t, flood.Send(ctx, binary.LittleEndian.AppendUint64(order, 7)))
	native := make(chan int)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	went := 0
	wg.Go(func() {
		for {
			select {
			case <-native:
				went++
			case <-stop:
				return
			}
		}
	})
	var chosen [3]int
	for chosen[1] < offered {
		short, cancel := context.WithCancel(ctx)
		if rand.IntN(4) == 0 {
			wg.Go(cancel)
		}
		buf := make([]byte, MessageSize)
		i, err := Select(short, SendCase(sink, []byte("m")), ReceiveCase(flood, buf, nil), GoSend(native, 1))
		if err == nil {
			chosen[i]++
		} else {
			require.ErrorIs(t, err, ErrWithdrawn)
		}
		cancel()
	}
	close(stop)
	wg.Wait()
	assert.Equal(t, chosen[2], went)
	require.NoError(t, sink.Send(ctx, []byte("SINKSTAT")))
	var stat [3]uint64
	_, err := sink.Receive(ctx, valueBytes(&stat))
	require.NoError(t, err)
	assert.Equal(t, uint64(chosen[0]), stat[0], "messages the device took")
}

func TestSimFutures(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	const n = 200
	out, back := make([][]uint64, n), make([][]uint64, n)
	var futures []*Future
	for i := range n {
		out[i], back[i] = make([]uint64, i), make([]uint64, i)
		for j := range out[i] {
			out[i][j] = uint64(i * j)
		}
		futures = append(futures, SendIndCase(ch, out[i], 8*i).Start(ctx), ReceiveIndCase(ch, back[i], 8*i).Start(ctx))
	}
	for _, f := range futures {
		_, err := f.Wait(ctx)
		require.NoError(t, err)
	}
	require.Equal(t, out, back)
}

func TestSimStriped(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	chs := startSim(t, dev, "loopback", 5)
	for _, size := range []int{0, 1, pageSize, 5 * pageSize, 1<<20 + 17} {
		out, back := make([]byte, size), make([]byte, size)
		for i := range out {
			out[i] = byte(i * 31)
		}
		// One process serves all five ports, a transfer at a time: the ends
		// of one stripe must not wait for those of another.
		got := make(chan error, 1)
		go func() { _, err := ReceiveStriped(ctx, back, size, chs...); got <- err }()
		require.NoError(t, SendStriped(ctx, out, size, chs...))
		require.NoError(t, <-got)
		require.Equal(t, out, back)
	}
	chs = append(chs[:2:2], startSim(t, dev, "source", 1)[0]) // reads messages
	err := SendStriped(ctx, make([]byte, 12288), 12288, chs...)
	var se *StripeError
	require.ErrorAs(t, err, &se)
	assert.Equal(t, 2, se.Index)
	assert.ErrorIs(t, err, ErrKindMismatch)
}

// TestSimStripedLedger cancels striped sends at any moment: what they report as
// delivered, and nothing else, is what the targets counted.
func TestSimStripedLedger(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	var chs []*Channel
	for range 6 {
		chs = append(chs, startSim(t, dev, "sink", 1)...)
	}
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, len(chs)*100_000)
	sent := make([]uint64, len(chs))
	cancelled := 0
	for range 500 {
		size := random.IntN(len(data))
		if random.IntN(2) == 0 {
			size /= 16
		}
		within, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(60))*time.Microsecond)
		err := SendStriped(within, data, size, chs...)
		cancel()
		var se *StripeError
		if err != nil {
			require.ErrorAs(t, err, &se)
			cancelled++
		}
		for i, stripe := range stripesOf(size, len(chs)) {
			if err == nil || se.Delivered[i] {
				sent[i] += uint64(stripe.size)
			}
		}
	}
	var stat [24]byte
	for i, ch := range chs {
		require.NoError(t, ch.Send(ctx, []byte("SINKSTAT")))
		_, err := ch.Receive(ctx, stat[:])
		require.NoError(t, err)
		require.Equal(t, sent[i], binary.LittleEndian.Uint64(stat[8:]), "bytes of stripe %d", i)
	}
	t.Logf("%d of 500 sends ended early", cancelled)
}

func TestSimResetEndsPendingCalls(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	ch := startSim(t, dev, "hold", 1)[0]
	f := SendIndCase(ch, make([]byte, 1<<20), 1<<20).Start(ctx)
	require.NoError(t, dev.Reset(ctx))
	_, err := f.Wait(ctx)
	require.ErrorIs(t, err, ErrDeviceLost)
	_, err = Select(ctx, SendCase(ch, nil))
	require.ErrorIs(t, err, ErrDeviceLost)
	loop := startSim(t, dev, "loopback", 1)[0]
	require.NoError(t, loop.Send(ctx, []byte("anew")))
}

func TestSimSendersAreConcurrent(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "sink", 1)[0]
	var wg sync.WaitGroup
	errs := make(chan error, 16) // one for each sender
	for i := range cap(errs) {
		wg.Go(func() {
			var err error
			for range 50 {
				if i%2 == 0 {
					err = errors.Join(err, ch.Send(ctx, []byte("m")))
				} else {
					var local [100]uint64
					err = errors.Join(err, ch.SendInd(ctx, &local, 800))
				}
			}
			errs <- err
		})
	}
	wg.Wait()
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	s := ch.Stats()
	assert.Equal(t, uint64(400), s.Direct.H2D.Messages)
	assert.Equal(t, uint64(400*800), s.Indirect.H2D.Bytes)
}

func TestSimNoAllocations(t *testing.T) {
	ctx := context.Background()
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	msg, data, floats := make([]byte, 56), make([]byte, 100_000), make([]float64, 5000)
	points := ChanOf[point](ch)
	var err error
	budget(t, "message", false, func() {
		err = errors.Join(err, ch.Send(ctx, msg))
		_, e := ch.Receive(ctx, msg)
		err = errors.Join(err, e)
	})
	budget(t, "transfer", false, func() {
		err = errors.Join(err, ch.SendInd(ctx, data, len(data)))
		_, e := ch.ReceiveInd(ctx, data, len(data))
		err = errors.Join(err, e)
	})
	budget(t, "transfer of floats", false, func() {
		err = errors.Join(err, ch.SendInd(ctx, floats, 40_000))
		_, e := ch.ReceiveInd(ctx, floats, 40_000)
		err = errors.Join(err, e)
	})
	budget(t, "typed", true, func() {
		err = errors.Join(err, points.Send(ctx, point{1, 2}))
		_, e := points.Receive(ctx)
		err = errors.Join(err, e)
	})
	require.NoError(t, err)
}

func BenchmarkSim(b *testing.B) {
	ctx := context.Background()
	ch := startSim(b, openSim(b, "sim:"), "loopback", 1)[0]
	msg, data := make([]byte, 56), make([]byte, 1<<20)
	points := ChanOf[point](ch)
	b.Run("message", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = ch.Send(ctx, msg)
			_, _ = ch.Receive(ctx, msg)
		}
	})
	b.Run("typed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = points.Send(ctx, point{})
			_, _ = points.Receive(ctx)
		}
	})
	b.Run("transfer", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(2 * int64(len(data)))
		for b.Loop() {
			_ = ch.SendInd(ctx, data, len(data))
			_, _ = ch.ReceiveInd(ctx, data, len(data))
		}
	})
}

// TestChannelsLists: what Channels returns follows opening, closing and reset.
func TestChannelsLists(t *testing.T) {
	dev := openSim(t, "sim:")
	require.Empty(t, dev.channels())
	a, err := dev.Subscribe(background(t), Loopback)
	require.NoError(t, err)
	b, err := dev.Subscribe(background(t), abi.TargetLog)
	require.NoError(t, err)
	require.ElementsMatch(t, []*Channel{a, b}, dev.channels())
	require.NoError(t, a.CloseSend())
	require.Len(t, dev.channels(), 2, "one half is open")
	require.NoError(t, a.CloseReceive())
	require.Equal(t, []*Channel{b}, dev.channels())
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	require.Empty(t, dev.channels())
	c, err := dev.Subscribe(background(t), Loopback)
	require.NoError(t, err)
	require.NoError(t, dev.Reset(background(t)))
	require.Empty(t, dev.channels(), "the reset ended them")
	require.NoError(t, c.Close())
	_, err = dev.Subscribe(background(t), Loopback)
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	require.Empty(t, dev.channels(), "and so did the close")
}

// TestChannelsAfterAResetThatTimedOut: the channels of a device that is not back
// yet are still there, to be closed, and the reset that succeeds ends them.
func TestChannelsAfterAResetThatTimedOut(t *testing.T) {
	dev := openSim(t, "sim:")
	ch, err := dev.Subscribe(background(t), Loopback)
	require.NoError(t, err)
	require.NoError(t, ch.Send(background(t), []byte("x")))
	inside, release := make(chan struct{}), make(chan struct{})
	held := running(t, func() error {
		err := ch.ReceiveFunc(background(t), func([]byte) error {
			close(inside)
			<-release
			return nil
		})
		if !errors.Is(err, ErrDeviceLost) {
			return fmt.Errorf("the call that held the reset up ended with %w", err)
		}
		return nil
	})
	<-inside
	ended, cancel := context.WithCancel(background(t))
	cancel()
	require.ErrorIs(t, dev.Reset(ended), ErrWithdrawn)
	_, err = dev.Health()
	require.NoError(t, err, "nothing was reset")
	brief, cancel := context.WithCancel(background(t))
	reset := running(t, func() error {
		if err := dev.Reset(brief); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the reset that was cancelled ended with %w", err)
		}
		return nil
	})
	require.Eventually(t, func() bool {
		_, err := ch.trySend(nil, nil)
		return errors.Is(err, ErrDeviceLost)
	}, time.Minute, time.Millisecond)
	cancel()
	reset()
	require.Equal(t, []*Channel{ch}, dev.channels())
	require.ErrorIs(t, ch.Send(background(t), nil), ErrDeviceLost)
	close(release)
	require.NoError(t, dev.Reset(background(t)))
	require.Empty(t, dev.channels())
	held()
	_, err = dev.Subscribe(background(t), Loopback)
	require.NoError(t, err)
}

// TestSimVerify: transfers are compared here, and lists show it: none is eager.
func TestSimVerify(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	require.NoError(t, ch.Verify(true))
	data, back := []byte("some bytes"), make([]byte, 10)
	require.NoError(t, ch.SendInd(ctx, data))
	_, err := ch.ReceiveInd(ctx, back)
	require.NoError(t, err)
	require.Equal(t, data, back)
	require.EqualValues(t, 2, ch.Stats().Lists)
}

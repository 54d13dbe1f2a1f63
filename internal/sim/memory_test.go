//go:build cgo && linux

package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// literal is in memory that is read-only.
const literal = "a string literal is read-only memory"

// wantDMA checks that a transfer stopped in the page that cannot be reached.
func wantDMA(t *testing.T, err error, mem []byte, good int, runs bool) {
	t.Helper()
	var where *bridge.TransferError
	require.ErrorIs(t, err, bridge.ErrDMA)
	require.ErrorAs(t, err, &where)
	bad := good / os.Getpagesize()
	list, entry := bad/wire.ListEntries, bad%wire.ListEntries
	if runs {
		list, entry = 0, 0
	}
	assert.EqualValues(t, list, where.List)
	assert.EqualValues(t, entry, where.Entry)
	assert.EqualValues(t, bad*os.Getpagesize(), where.Processed, "up to that page")
	assert.EqualValues(t, len(mem), where.Processed+where.Outstanding)
}

// pair subscribes a new process of a program.
func pair(ctx context.Context, t *testing.T, dev bridge.Device, program string, argument uint64) bridge.Channel {
	t.Helper()
	p, err := dev.Start(ctx, bridge.Program{Name: program, Targets: 1, Argument: argument})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	return ch
}

// TestBadMemory: memory that cannot be reached ends a transfer with ErrDMA and the place, both
// ways, for each copying side; the device continues.
func TestBadMemory(t *testing.T) {
	for _, options := range []string{"", "engines=1", "islands=2&engines=3", "runs=0&engines=1"} {
		t.Run(options, func(t *testing.T) { checkBadMemory(t, openDevice(t, options)) })
	}
	t.Run("one hop", func(t *testing.T) { checkBadMemory(t, openFar("2x1x1", 1)(t, "")) })
}

func checkBadMemory(t *testing.T, dev bridge.Device) {
	defer dev.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ch := pair(ctx, t, dev, "loopback", 0)
	for _, c := range []struct{ size, good int }{
		{1, 0}, {4096, 0}, {100 << 10, 0}, {100 << 10, 60 << 10}, {3<<20 + 5, 0}, {3<<20 + 5, 2<<20 + 4096*3}, {3<<20 + 5, 3 << 20},
	} {
		for _, kind := range []string{"truncated file", "no access"} {
			mem := bridgetest.BadMemory(t, kind, c.size, c.good)
			wantDMA(t, ch.SendInd(ctx, mem), mem, c.good, dev.Info().Runs)
		}
		for _, kind := range []string{"truncated file", "no access", "read only"} {
			mem := bridgetest.BadMemory(t, kind, c.size, c.good)
			require.NoError(t, ch.SendInd(ctx, make([]byte, c.size)), "%s", kind)
			wantDMA(t, ch.ReceiveInd(ctx, mem), mem, c.good, dev.Info().Runs)
		}
	}
	require.NoError(t, ch.SendInd(ctx, make([]byte, len(literal))))
	text := unsafe.Slice(unsafe.StringData(literal), len(literal))
	require.ErrorIs(t, ch.ReceiveInd(ctx, text), bridge.ErrDMA)
	echo(ctx, t, ch)
}

// TestBadMemoryBesideGood: transfers that fail disturb none beside them, while
// Go code that touches bad memory panics as ever.
func TestBadMemoryBesideGood(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev := openDevice(t, "engines=2&islands=2")
	defer dev.Close()
	bad := bridgetest.BadMemory(t, "no access", 1<<20, 512<<10)
	var all sync.WaitGroup
	for range 4 {
		good, ill := pair(ctx, t, dev, "loopback", 0), pair(ctx, t, dev, "loopback", 0)
		all.Go(func() { echo(ctx, t, good) })
		all.Go(func() {
			for range 50 {
				assert.ErrorIs(t, ill.SendInd(ctx, bad), bridge.ErrDMA)
			}
		})
		all.Go(func() {
			for range 50 {
				assert.Contains(t, panics(func() { _ = *(*int)(nil) }), "invalid memory address")
				assert.Contains(t, panics(func() { bad[600<<10]++ }), "invalid memory address")
			}
		})
	}
	all.Wait()
}

// TestRoundsRepeat: a device whose engines are busy now and then asks for rounds
// again; every byte arrives once and right, both ways. One that is busy for good
// ends the transfer, and works on.
func TestRoundsRepeat(t *testing.T) {
	for _, options := range []string{"busy=2", "busy=3&engines=1", "busy=7&engines=3&islands=2", "busy=64&window=2"} {
		t.Run(options, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			dev := openDevice(t, options)
			defer dev.Close()
			ch := pair(ctx, t, dev, "loopback", 0)
			for n := 0; n < 200 && (n < 3 || ch.Stats().Repeated == 0); n++ {
				echo(ctx, t, ch)
			}
			require.Positive(t, ch.Stats().Repeated)
			require.Zero(t, dev.Stats().Faults)
		})
	}
	t.Run("for good", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		dev := openDevice(t, "busy=1")
		defer dev.Close()
		ch := pair(ctx, t, dev, "loopback", 0)
		for i := range uint64(3) {
			require.ErrorIs(t, ch.SendInd(ctx, make([]byte, 128<<10)), bridge.ErrDMA)
			require.Equal(t, (i+1)*wire.RepeatsMax, ch.Stats().Repeated)
			require.NoError(t, ch.Send(ctx, []byte("on")))
			_, err := ch.Receive(ctx, make([]byte, 56))
			require.NoError(t, err)
			require.ErrorIs(t, ch.SendInd(ctx, make([]byte, 1<<10)), bridge.ErrDMA, "the device tries an eager one itself")
		}
	})
}

// TestLoopbackLeavesRoomToLoad: the memory that a large transfer needed is there
// again for an image.
func TestLoopbackLeavesRoomToLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev := openDevice(t, "emem=64KiB")
	defer dev.Close()
	loop, err := dev.Subscribe(ctx, abi.TargetLoopback)
	require.NoError(t, err)
	data := make([]byte, 60<<10)
	require.NoError(t, loop.SendInd(ctx, data))
	require.NoError(t, loop.ReceiveInd(ctx, data))
	image := answerer(t, "roomy", 1)
	for err = bridge.ErrNoMemory; errors.Is(err, bridge.ErrNoMemory) && ctx.Err() == nil; {
		_, err = dev.Load(ctx, image)
	}
	require.NoError(t, err)
}

// panics returns what fn panicked with, a fault of memory included.
func panics(fn func()) (text string) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { text = fmt.Sprint(recover()) }()
	fn()
	return ""
}

// TestRegionIsUnmapped: memory that is registered and then unmapped under the device's eyes is
// memory that cannot be reached, and its region closes.
func TestRegionIsUnmapped(t *testing.T) {
	dev := openDevice(t, "")
	defer dev.Close()
	ch := pair(t.Context(), t, dev, "loopback", 0)
	mem, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	r, err := dev.Register(mem)
	require.NoError(t, err)
	require.NoError(t, ch.SendInd(t.Context(), mem[4096:]))
	require.NoError(t, ch.ReceiveInd(t.Context(), mem[4096:]))
	require.NoError(t, unix.Munmap(mem))
	require.ErrorIs(t, ch.SendInd(t.Context(), mem[4096:]), bridge.ErrDMA)
	require.NoError(t, r.Close())
	require.Zero(t, dev.Stats().Regions)
	echo(t.Context(), t, ch)
}

// TestBufferOfTargets: a transfer that the parts of a process do not hold is refused, and others have
// theirs.
func TestBufferOfTargets(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "buffer=60KiB&emem=256KiB")
	defer dev.Close()
	for _, targets := range []int{1, 2, 1} {
		p, err := dev.Start(ctx, bridge.Program{Name: "sink", Targets: targets})
		require.NoError(t, err)
		ch, err := dev.Subscribe(ctx, p.First)
		require.NoError(t, err)
		room := targets * 60 << 10
		require.NoError(t, ch.SendInd(ctx, make([]byte, room)))
		require.ErrorIs(t, ch.SendInd(ctx, make([]byte, room+1)), bridge.ErrRange)
		require.NoError(t, ch.SendInd(ctx, make([]byte, room)))
	}
}

// TestAccessesTakeTime: by the device's own clock an access takes the cycles of its type, from a program
// that is loaded. Nothing holds for how much longer it takes on this machine.
func TestAccessesTakeTime(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "mhz=1")
	defer dev.Close()
	p, err := dev.Start(ctx, bridge.Program{Name: load(ctx, t, dev, build(t, "accesses.c")), Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	var answer [56]byte
	n, err := ch.Receive(ctx, answer[:])
	require.NoError(t, err)
	require.Equal(t, 32, n)
	for i, least := range []uint64{37_500, 75_000, 200_000, 325_000} {
		require.GreaterOrEqual(t, binary.LittleEndian.Uint64(answer[8*i:]), least, "type %d", i)
	}
}

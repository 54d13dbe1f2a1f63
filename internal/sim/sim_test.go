package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openDevice(t *testing.T, options string) bridge.Device {
	t.Helper()
	address := "sim:"
	if options != "" {
		address += "?" + options
	}
	dev, err := bridge.Open(context.Background(), address, nil)
	require.NoError(t, err)
	return dev
}

// TestConformance runs every rule of the contract on the default shape.
func TestConformance(t *testing.T) { bridgetest.Run(t, openVerified) }

// TestConformanceOfPages runs the rules about transfers on a device that knows page
// entries alone.
func TestConformanceOfPages(t *testing.T) {
	bridgetest.RunTransfers(t, func(t *testing.T, options string) bridge.Device {
		dev := openVerified(t, "runs=0&"+options)
		require.False(t, dev.Info().Runs)
		return dev
	})
}

// TestConformanceOfTheCard runs the rules about transfers on a device that has neither runs nor eager
// transfers, as the card of the paper.
func TestConformanceOfTheCard(t *testing.T) {
	bridgetest.RunTransfers(t, func(t *testing.T, options string) bridge.Device {
		return openVerified(t, "runs=0&eager=0&"+options)
	})
}

func TestBadAddress(t *testing.T) {
	for _, c := range []struct {
		address, says string
		is            error
	}{
		{"sim:?manager=8", `option "manager" is not one of`, bridge.ErrOption},
		{"sim:?managers=8&managers=4", `option "managers" is given twice`, bridge.ErrOption},
		{"sim:?managers=many", "option managers=many: invalid argument: want a count, 1..64", bridge.ErrInvalid},
		{"sim:?managers=0", "option managers=0: invalid argument: want a count, 1..64", bridge.ErrInvalid},
		{"sim:?contexts=1024", "option contexts=1024: invalid argument: want a count, 1..64", bridge.ErrInvalid},
		{"sim:?eager=5", "option eager=5: invalid argument: want a count, 0..4", bridge.ErrInvalid},
		{"sim:?engines=17", "option engines=17: invalid argument: want a count, 0..16", bridge.ErrInvalid},
		{"sim:?emem=1TB", "option emem=1TB: invalid argument: want a size, 4KiB..256GiB, a multiple of 4KiB", bridge.ErrInvalid},
		{"sim:?cls=5000", "option cls=5000: ", bridge.ErrInvalid},
		{"sim:?stack=4GiB", "option stack=4GiB: invalid argument: want a size, 16KiB..16MiB", bridge.ErrInvalid},
		{"sim:?stack=4294983680", "option stack=4294983680: invalid argument: want a size", bridge.ErrInvalid},
		{"sim:?beat=-1s", "option beat=-1s: ", bridge.ErrInvalid},
		{"sim:?beat=500us", "option beat=500us: invalid argument: want a duration, 1ms..1m0s, a multiple of 1ms", bridge.ErrInvalid},
		{"sim:?beat=4294967297ms", "option beat=4294967297ms: invalid argument", bridge.ErrInvalid},
		{"sim:?spin=2s", "option spin=2s: invalid argument: want a duration, 0s..1s", bridge.ErrInvalid},
		{"sim:?slots=1000", "option slots=1000: invalid argument: want a count, 16..16384, a power of two", bridge.ErrInvalid},
		{"sim:?islands=3", "options managers=8, islands=3: invalid argument", bridge.ErrInvalid},
		{"sim:path", "sim takes no path", bridge.ErrInvalid},
		{"nowhere:", `scheme "nowhere" is not one of sim`, bridge.ErrScheme},
		{"", "has no scheme", bridge.ErrScheme},
	} {
		_, err := bridge.Open(context.Background(), c.address, nil)
		require.ErrorIs(t, err, c.is, c.address)
		require.ErrorContains(t, err, c.says, c.address)
	}
}

// TestDeviceLog sends a line through the log target to the host's logger.
func TestDeviceLog(t *testing.T) {
	lines := make(chan string, 8)
	logger := slog.New(slog.NewTextHandler(writer(func(p []byte) { lines <- string(p) }), nil))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, err := bridge.Open(ctx, "sim:", &bridge.Options{Logger: logger})
	require.NoError(t, err)
	defer dev.Close()
	log, err := dev.Subscribe(ctx, abi.TargetLog)
	require.NoError(t, err)
	require.NoError(t, log.Send(ctx, []byte("hello from the host")))
	require.Contains(t, <-lines, "hello from the host")
	buf := make([]byte, 56)
	n, err := log.Receive(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "hello from the host", strings.TrimRight(string(buf[:n]), "\x00"))
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// TestShapes echoes messages and transfers on many channels of devices of
// other shapes: several islands, DMA engines, the smallest rings and window.
func TestShapes(t *testing.T) {
	for _, shape := range []string{
		"islands=2&managers=4&channels=64", "engines=2", "islands=2&managers=2&engines=1&channels=40",
		"slots=16&window=1&managers=1", "microengines=2&contexts=8&stack=32KiB", "spin=0",
	} {
		t.Run(shape, func(t *testing.T) {
			bridgetest.LeakCheck(t)
			dev := openDevice(t, shape)
			defer func() { require.NoError(t, dev.Close()) }()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for _, first := range []bridge.Target{17, 0, 0, bridge.Target(dev.Info().Channels) - 1} {
				p, err := dev.Start(ctx, bridge.Program{Name: "loopback", First: first, Targets: 1})
				require.NoError(t, err)
				ch, err := dev.Subscribe(ctx, p.First)
				require.NoError(t, err)
				all.Go(func() { echo(ctx, t, ch) })
			}
			all.Wait()
		})
	}
}

// echo sends messages and transfers of growing size through a loopback.
func echo(ctx context.Context, t *testing.T, ch bridge.Channel) {
	out, in := make([]byte, 1<<20+3), make([]byte, 1<<20+3)
	for i := range out {
		out[i] = byte(i*7 + i>>12)
	}
	for size := 1; size <= len(out); size = size*5 + 1 {
		n := min(size, 56)
		if !assert.NoError(t, ch.Send(ctx, out[:n])) {
			return
		}
		got, err := ch.Receive(ctx, in)
		assert.NoError(t, err)
		assert.Equal(t, out[:n], in[:got])
		assert.NoError(t, ch.SendInd(ctx, out[:size]))
		assert.NoError(t, ch.ReceiveInd(ctx, in[:size]))
		assert.True(t, bytes.Equal(out[:size], in[:size]), "%d bytes", size)
	}
}

// TestServices asks telemetry for its counters and the device for the time.
func TestServices(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev := openDevice(t, "")
	defer dev.Close()
	telemetry, err := dev.Subscribe(ctx, abi.TargetTelemetry)
	require.NoError(t, err)
	var page [56]byte
	require.NoError(t, telemetry.Send(ctx, []byte{0, 0, 0, 0}))
	n, err := telemetry.Receive(ctx, page[:])
	require.NoError(t, err)
	require.Equal(t, 56, n)
	require.NotZero(t, binary.LittleEndian.Uint64(page[:]), "messages taken")

	clock, err := dev.Subscribe(ctx, abi.TargetTime)
	require.NoError(t, err)
	require.NoError(t, clock.Send(ctx, binary.LittleEndian.AppendUint64(nil, 42)))
	n, err = clock.Receive(ctx, page[:])
	require.NoError(t, err)
	require.Equal(t, 24, n)
	require.Equal(t, uint64(42), binary.LittleEndian.Uint64(page[:]))
	in, out := binary.LittleEndian.Uint64(page[8:]), binary.LittleEndian.Uint64(page[16:])
	require.NotZero(t, in)
	require.GreaterOrEqual(t, out, in)
}

// TestSilentDevice: a program that keeps its island to itself stops the
// heartbeat; calls end with ErrDeviceLost, and Reset brings the device back.
func TestSilentDevice(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev := openDevice(t, "")
	defer dev.Close()
	hold, err := dev.Start(ctx, bridge.Program{Name: "hold", Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, hold.First)
	require.NoError(t, err)
	blocked := make(chan error, 1)
	go func() { blocked <- ch.Send(ctx, nil) }()
	_, err = dev.Start(ctx, bridge.Program{Name: "lone.spin", Targets: 1, Argument: 5000})
	if err != nil { // the island may stop before it can say that it started
		require.ErrorIs(t, err, bridge.ErrDeviceLost)
	}
	require.ErrorIs(t, <-blocked, bridge.ErrDeviceLost)
	_, err = dev.Health()
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	require.NoError(t, dev.Reset(ctx))
	loop, err := dev.Subscribe(ctx, abi.TargetLoopback)
	require.NoError(t, err)
	require.NoError(t, loop.Send(ctx, []byte("back")))
}

// TestSinkVerifies: the sink distinguishes a transfer of the source's pattern from one
// with a wrong byte.
func TestSinkVerifies(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev := openDevice(t, "")
	defer dev.Close()
	p, err := dev.Start(ctx, bridge.Program{Name: "sink", Targets: 1})
	require.NoError(t, err)
	sink, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	const seed = 1 << 57
	require.NoError(t, sink.Send(ctx, binary.LittleEndian.AppendUint64([]byte("SINKSEED"), seed)))
	data := make([]byte, 3<<20+5)
	for i := range data {
		data[i] = byte((uint64(i)*0x9E3779B97F4A7C15 + seed) >> 56)
	}
	for wrong, flip := range []byte{0, 1, 0x80} {
		data[len(data)-1] ^= flip
		require.NoError(t, sink.SendInd(ctx, data))
		data[len(data)-1] ^= flip
		require.NoError(t, sink.Send(ctx, []byte("SINKDIFF")))
		var answer [8]byte
		_, err := sink.Receive(ctx, answer[:])
		require.NoError(t, err)
		require.EqualValues(t, wrong, binary.LittleEndian.Uint64(answer[:]))
	}
}

// within returns a context that ends when the test hangs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestStartSpreadsProcesses: processes that the device gives targets to are spread over its islands.
func TestStartSpreadsProcesses(t *testing.T) {
	dev := openDevice(t, "channels=400&islands=4&managers=4")
	each := make(map[bridge.Target]int)
	for range 12 {
		p, err := dev.Start(within(t), bridge.Program{Name: "hold", Targets: 1})
		require.NoError(t, err)
		each[p.First/(400/4)]++
	}
	require.Equal(t, map[bridge.Target]int{0: 3, 1: 3, 2: 3, 3: 3}, each)
	require.NoError(t, dev.Close())
}

// TestStartSkipsTargetsStillSubscribed: a target that the device chooses can be
// subscribed, also while channels of ended processes are open.
func TestStartSkipsTargetsStillSubscribed(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "channels=40&islands=2&managers=2")
	defer dev.Close()
	var open []bridge.Channel
	for {
		p, err := dev.Start(ctx, bridge.Program{Name: "hold", Targets: 2})
		if errors.Is(err, bridge.ErrTargetTimeout) {
			continue // an island had no processor for half a second
		}
		if err != nil {
			require.ErrorIs(t, err, bridge.ErrNoMemory)
			break
		}
		for i := range bridge.Target(2) {
			ch, err := dev.Subscribe(ctx, p.First+i)
			require.NoError(t, err)
			open = append(open, ch)
		}
		require.NoError(t, dev.Stop(ctx, p.ID))
	}
	require.Len(t, open, 40-abi.TargetFirst, "each target once")
	for _, ch := range open {
		require.NoError(t, ch.Close())
	}
	_, err := dev.Start(ctx, bridge.Program{Name: "hold", Targets: 2})
	require.NoError(t, err)
}

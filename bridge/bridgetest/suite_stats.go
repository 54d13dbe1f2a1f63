package bridgetest

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

var statsCases = []testCase{
	{"stats/add-up", statsAddUp},
	{"stats/health", health},
	{"stats/allocations", allocations},
}

// statsAddUp: the counters say what was done, per channel and for the device,
// also when channels have closed.
func statsAddUp(e *env) {
	dev := e.device("")
	base := dev.Stats()
	ports := e.run(dev, "loopback", 2)
	for i, ch := range ports {
		for n := range 10 * (i + 1) {
			e.echo(ch, make([]byte, n))
			e.echoInd(ch, 1000*n, 1)
		}
	}
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	for _, op := range operations[:4] {
		require.Error(e, op.do(ctx, ports[0]))
	}
	var sum bridge.ChannelStats
	for i, ch := range ports {
		st, n := ch.Stats(), uint64(10*(i+1))
		for _, half := range []abi.Direction{abi.H2D, abi.D2H} {
			failed := uint64(1 - i)
			require.Equal(e, bridge.PathStats{Messages: n, Bytes: n * (n - 1) / 2, Errors: failed}, st.Direct[half])
			require.Equal(e, bridge.PathStats{Messages: n, Bytes: 500 * n * (n - 1), Errors: failed}, st.Indirect[half])
			sum.Direct[half].Messages += st.Direct[half].Messages
			sum.Indirect[half].Bytes += st.Indirect[half].Bytes
		}
		sum.Lists += st.Lists
	}
	require.Positive(e, sum.Lists)
	require.Equal(e, base.Channels+2, dev.Stats().Channels)
	require.NoError(e, ports[0].Close())
	st := dev.Stats()
	require.Equal(e, base.Channels+1, st.Channels)
	for _, half := range []abi.Direction{abi.H2D, abi.D2H} {
		require.GreaterOrEqual(e, st.Direct[half].Messages, sum.Direct[half].Messages)
		require.Equal(e, base.Indirect[half].Bytes+sum.Indirect[half].Bytes, st.Indirect[half].Bytes)
	}
	require.Equal(e, base.Lists+sum.Lists, st.Lists)
	require.Zero(e, st.Faults)
	require.Zero(e, st.Resets)
}

// health: heartbeats count up and tell what the device did.
func health(e *env) {
	dev := e.device("")
	before, err := dev.Health()
	require.NoError(e, err)
	ch := e.subscribe(dev, abi.TargetLoopback)
	for range 10 {
		e.echo(ch, []byte("counted"))
		e.echoInd(ch, 10_000, 0)
	}
	e.start(dev, "hold", 1)
	e.until("heartbeat tells", func() bool {
		h, err := dev.Health()
		require.NoError(e, err)
		require.True(e, h.Diagnostic.Valid())
		require.Equal(e, abi.Normal, h.Diagnostic.Worst())
		return h.Beat > before.Beat && h.Messages >= before.Messages+20 &&
			h.Bytes >= before.Bytes+200_000 && h.Processes > 0
	})
}

// allocations: the four calls allocate nothing once a channel has been used.
// The race detector allocates by itself, so there only the calls are made.
func allocations(e *env) {
	dev := e.device("")
	ch := e.subscribe(dev, abi.TargetLoopback)
	ctx, msg, buf := context.Background(), []byte("no garbage"), make([]byte, 56)
	e.noAllocations("Send and Receive", func() {
		if err := ch.Send(ctx, msg); err != nil {
			e.Error(err)
		}
		if n, err := ch.Receive(ctx, buf); err != nil || !bytes.Equal(buf[:n], msg) {
			e.Error("receive", err)
		}
	})
	data := make([]byte, 100_000)
	e.noAllocations("SendInd and ReceiveInd", func() {
		if err := ch.SendInd(ctx, data); err != nil {
			e.Error(err)
		}
		if err := ch.ReceiveInd(ctx, data); err != nil {
			e.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.noAllocations("with a context that can end", func() {
		if err := ch.Send(ctx, msg); err != nil {
			e.Error(err)
		}
		if _, err := ch.Receive(ctx, buf); err != nil {
			e.Error(err)
		}
	})
}

func (e *env) noAllocations(what string, f func()) {
	e.Helper()
	for range 20 {
		f()
	}
	if n := testing.AllocsPerRun(500, f); n != 0 && !raceEnabled {
		e.Errorf("%s: %v allocations per run", what, n)
	}
}

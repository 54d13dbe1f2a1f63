package bridgetest

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var crowdCases = []testCase{
	{"crowd/10000-blocked-senders", crowdSenders},
	{"crowd/blocked-transfers", crowdTransfers},
}

// crowdSenders: ten thousand senders to targets that never read cost memory
// only: no threads, and a live channel works beside them. Cancelled, every one
// of them knows that its message was withdrawn.
func crowdSenders(e *Env) {
	n := 10_000
	switch {
	case testing.Short():
		n = 2_000 // an emulated machine
	case RaceEnabled:
		n = 4_000 // the race detector bounds goroutines at 8,128
	}
	dev := e.device("channels=20000&managers=2")
	live := e.Subscribe(dev, abi.TargetLoopback)
	ports := e.Ports(dev, "hold", n)
	before := threads()
	ctx, cancel := context.WithCancel(e.Ctx())
	calls := make([]*Pending, n)
	for i, ch := range ports {
		calls[i] = Call("send", func() error { return ch.Send(ctx, pattern.Words(uint64(i))) })
	}
	e.UntilBlocked(dev, n)
	for i := range uint64(Scaled(10_000)) {
		e.Echo(live, pattern.Words(i))
	}
	e.EchoInd(live, 1<<20, 8)
	require.Less(e, threads()-before, 16+runtime.GOMAXPROCS(0), "blocked calls hold threads")
	for _, c := range calls {
		require.False(e, c.Over(), "nobody read this message")
	}
	cancel()
	for _, c := range calls {
		require.ErrorIs(e, e.Wait(c), bridge.ErrWithdrawn)
	}
	require.Zero(e, dev.Stats().Blocked)
	e.Echo(live, []byte("still here"))
}

// crowdTransfers: so do blocked transfers, each way, and a close ends them.
func crowdTransfers(e *Env) {
	n := Scaled(2000)
	dev := e.device("channels=20000&managers=2")
	live := e.Subscribe(dev, abi.TargetLoopback)
	ports := e.Ports(dev, "hold", n)
	data := make([]byte, 100_000)
	var calls []*Pending
	for i, ch := range ports {
		calls = append(calls, Call("transfer", func() error {
			if i%2 == 0 {
				return ch.SendInd(e.Ctx(), data)
			}
			return ch.ReceiveInd(e.Ctx(), data)
		}))
	}
	e.UntilBlocked(dev, n)
	e.EchoInd(live, 1<<20, 8)
	for _, ch := range ports {
		require.NoError(e, ch.Close())
	}
	for _, c := range calls {
		require.ErrorIs(e, e.Wait(c), bridge.ErrClosed)
	}
	e.Echo(live, []byte("still here"))
}

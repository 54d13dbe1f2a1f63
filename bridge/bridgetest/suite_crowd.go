package bridgetest

import (
	"context"
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

var crowdCases = []testCase{
	{"crowd/10000-blocked-senders", crowdSenders},
	{"crowd/blocked-transfers", crowdTransfers},
}

// crowdSenders: ten thousand senders to targets that never read cost memory
// only: no threads, and a live channel works beside them. Cancelled, every one
// of them knows that its message was withdrawn.
func crowdSenders(e *env) {
	n := 10_000
	if raceEnabled {
		n = 4_000 // the race detector bounds goroutines at 8,128
	}
	dev := e.device("channels=20000&managers=2")
	live := e.subscribe(dev, abi.TargetLoopback)
	ports := e.run(dev, "hold", n)
	before := threads()
	ctx, cancel := context.WithCancel(e.ctx())
	calls := make([]*pending, n)
	for i, ch := range ports {
		calls[i] = call("send", func() error { return ch.Send(ctx, words(uint64(i))) })
	}
	e.untilBlocked(dev, n)
	for i := range uint64(scaled(10_000)) {
		e.echo(live, words(i))
	}
	e.echoInd(live, 1<<20, 8)
	require.Less(e, threads()-before, 16+runtime.GOMAXPROCS(0), "blocked calls hold threads")
	for _, c := range calls {
		require.False(e, c.over(), "nobody read this message")
	}
	cancel()
	for _, c := range calls {
		require.ErrorIs(e, e.wait(c), bridge.ErrWithdrawn)
	}
	require.Zero(e, dev.Stats().Blocked)
	e.echo(live, []byte("still here"))
}

// crowdTransfers: so do blocked transfers, each way, and a close ends them.
func crowdTransfers(e *env) {
	n := scaled(2000)
	dev := e.device("channels=20000&managers=2")
	live := e.subscribe(dev, abi.TargetLoopback)
	ports := e.run(dev, "hold", n)
	data := make([]byte, 100_000)
	var calls []*pending
	for i, ch := range ports {
		calls = append(calls, call("transfer", func() error {
			if i%2 == 0 {
				return ch.SendInd(e.ctx(), data)
			}
			return ch.ReceiveInd(e.ctx(), data)
		}))
	}
	e.untilBlocked(dev, n)
	e.echoInd(live, 1<<20, 8)
	for _, ch := range ports {
		require.NoError(e, ch.Close())
	}
	for _, c := range calls {
		require.ErrorIs(e, e.wait(c), bridge.ErrClosed)
	}
	e.echo(live, []byte("still here"))
}

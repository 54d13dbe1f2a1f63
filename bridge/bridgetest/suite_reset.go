package bridgetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

var resetCases = []testCase{
	{"reset/ends-pending-calls", resetPending},
	{"reset/device-works-again", resetWorksAgain},
	{"reset/during-transfers", resetDuringTransfers},
	{"reset/often", resetOften},
	{"reset/half-way", resetHalfWay},
	{"device/close-ends-pending-calls", deviceClosePending},
	{"device/close-during-transfers", deviceCloseDuringTransfers},
	{"device/use-after-close", deviceUseAfterClose},
}

// blockAll makes one blocked call of every kind, each on a channel of its own.
func (e *env) blockAll(dev bridge.Device) (calls []*pending, ports []bridge.Channel) {
	e.Helper()
	ports = e.run(dev, "hold", len(operations))
	for i, op := range operations {
		calls = append(calls, call(op.name, func() error { return op.do(e.ctx(), ports[i]) }))
	}
	e.untilBlocked(dev, len(calls))
	return calls, ports
}

// resetPending: a reset ends every pending call, and old channels stay lost.
func resetPending(e *env) {
	dev := e.device("")
	calls, ports := e.blockAll(dev)
	require.NoError(e, dev.Reset(e.ctx()))
	for _, c := range calls {
		e.Log(c.name)
		require.ErrorIs(e, e.wait(c), bridge.ErrDeviceLost)
	}
	for i, op := range operations {
		require.ErrorIs(e, op.do(e.ctx(), ports[i]), bridge.ErrDeviceLost, op.name)
		require.NoError(e, ports[i].Close())
	}
	require.Zero(e, dev.Stats().Blocked)
}

// resetWorksAgain: after a reset the device is as new, under the next epoch.
func resetWorksAgain(e *env) {
	dev := e.device("")
	p := e.start(dev, "loopback", 1)
	e.echo(e.subscribe(dev, p.First), []byte("before"))
	epoch := dev.Info().Epoch
	require.NoError(e, dev.Reset(e.ctx()))
	require.Equal(e, epoch+1, dev.Info().Epoch)
	require.EqualValues(e, 1, dev.Stats().Resets)
	_, err := dev.Subscribe(e.ctx(), p.First)
	require.ErrorIs(e, err, bridge.ErrNotSubscribed, "processes end with their epoch")
	e.echo(e.subscribe(dev, abi.TargetLoopback), []byte("service"))
	ch := e.run(dev, "loopback", 1)[0]
	e.echo(ch, []byte("process"))
	e.echoInd(ch, 100_000, 3)
	_, err = dev.Health()
	require.NoError(e, err)
}

// movers keeps transfers going on n channels until they fail.
func (e *env) movers(dev bridge.Device, n int) []*pending {
	e.Helper()
	var calls []*pending
	for i, ch := range e.run(dev, "loopback", n) {
		calls = append(calls, call("mover", func() error {
			for {
				if err := echoTransfer(e.ctx(), ch, 3<<20, uint64(i)); err != nil {
					return err
				}
			}
		}))
	}
	e.until("lists sent", func() bool { return dev.Stats().Lists > 0 })
	return calls
}

// resetDuringTransfers: transfers that move are ended by a reset as well.
func resetDuringTransfers(e *env) {
	dev := e.device("")
	for range max(2, scaled(10)) {
		calls := e.movers(dev, 4)
		require.NoError(e, dev.Reset(e.ctx()))
		for _, c := range calls {
			require.ErrorIs(e, e.wait(c), bridge.ErrDeviceLost)
		}
	}
	e.echo(e.subscribe(dev, abi.TargetLoopback), []byte("alive"))
}

// resetOften: resets in a row leave nothing behind, and epochs wrap in slots.
func resetOften(e *env) {
	dev := e.device("")
	n := max(30, scaled(300))
	for range n {
		require.NoError(e, dev.Reset(e.ctx()))
	}
	require.EqualValues(e, n, dev.Stats().Resets)
	e.echo(e.subscribe(dev, abi.TargetLoopback), []byte("alive"))
}

// resetHalfWay: a reset whose context ends while a call is still at work returns,
// as does one that waits behind another; the old channels are lost, and the next
// reset brings the device back.
func resetHalfWay(e *env) {
	dev := e.device("")
	ch := e.run(dev, "loopback", 1)[0]
	require.NoError(e, ch.Send(e.ctx(), []byte("held")))
	inside, release := make(chan struct{}), make(chan struct{})
	held := call("held", func() error {
		return ch.ReceiveFunc(e.ctx(), func([]byte) error {
			close(inside)
			<-release
			return nil
		})
	})
	<-inside
	brief := func() error {
		ctx, cancel := context.WithTimeout(e.ctx(), 10*time.Millisecond)
		defer cancel()
		return dev.Reset(ctx)
	}
	require.ErrorIs(e, brief(), context.DeadlineExceeded)
	require.ErrorIs(e, ch.Send(e.ctx(), nil), bridge.ErrDeviceLost)
	patient := call("reset", func() error { return dev.Reset(e.ctx()) })
	require.ErrorIs(e, brief(), context.DeadlineExceeded)
	close(release)
	require.NoError(e, e.wait(patient))
	require.ErrorIs(e, e.wait(held), bridge.ErrDeviceLost)
	require.Zero(e, dev.Stats().Channels)
	e.echo(e.run(dev, "loopback", 1)[0], []byte("again"))
	require.ErrorIs(e, ch.Send(e.ctx(), nil), bridge.ErrDeviceLost)
	require.NoError(e, ch.Close())
}

// deviceClosePending: closing the device ends every pending call.
func deviceClosePending(e *env) {
	dev := e.device("")
	calls, ports := e.blockAll(dev)
	require.NoError(e, dev.Close())
	for _, c := range calls {
		e.Log(c.name)
		require.ErrorIs(e, e.wait(c), bridge.ErrClosed)
	}
	for i, op := range operations {
		require.ErrorIs(e, op.do(e.ctx(), ports[i]), bridge.ErrClosed, op.name)
		require.NoError(e, ports[i].Close())
	}
}

// deviceCloseDuringTransfers: also while bytes move; whatever the device still
// does afterwards must not touch memory that is gone.
func deviceCloseDuringTransfers(e *env) {
	for range max(2, scaled(10)) {
		dev := e.device("")
		calls := e.movers(dev, 4)
		require.NoError(e, dev.Close())
		for _, c := range calls {
			require.ErrorIs(e, e.wait(c), bridge.ErrClosed)
		}
	}
}

// deviceUseAfterClose: a closed device refuses every call.
func deviceUseAfterClose(e *env) {
	dev := e.device("")
	info := dev.Info()
	require.NoError(e, dev.Close())
	_, err := dev.Subscribe(e.ctx(), abi.TargetLoopback)
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Start(e.ctx(), bridge.Program{Name: "hold", Targets: 1})
	require.ErrorIs(e, err, bridge.ErrClosed)
	require.ErrorIs(e, dev.Stop(e.ctx(), 1), bridge.ErrClosed)
	_, err = dev.Load(e.ctx(), []byte("image"))
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Programs(e.ctx())
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Memory(e.ctx(), abi.EMEM)
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Health()
	require.ErrorIs(e, err, bridge.ErrClosed)
	require.ErrorIs(e, dev.Reset(e.ctx()), bridge.ErrClosed)
	require.Equal(e, info, dev.Info())
	dev.Stats()
	require.NoError(e, dev.Close())
}

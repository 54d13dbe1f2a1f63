package bridgetest

import (
	"context"
	"errors"
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
	{"reset/ids-of-processes", resetProcesses},
	{"reset/calls-in-an-epoch", resetCalls},
	{"reset/half-way", resetHalfWay},
	{"device/close-ends-pending-calls", deviceClosePending},
	{"device/close-during-transfers", deviceCloseDuringTransfers},
	{"device/use-after-close", deviceUseAfterClose},
}

// blockAll makes one blocked call of every kind, each on a channel of its own.
func (e *Env) blockAll(dev bridge.Device) (calls []*Pending, ports []bridge.Channel) {
	e.Helper()
	ports = e.Ports(dev, "hold", len(Operations))
	for i, op := range Operations {
		calls = append(calls, Call(op.Name, func() error { return op.Do(e.Ctx(), ports[i]) }))
	}
	e.UntilBlocked(dev, len(calls))
	return calls, ports
}

// resetPending: a reset ends every pending call, and old channels stay lost.
func resetPending(e *Env) {
	dev := e.device("")
	calls, ports := e.blockAll(dev)
	require.NoError(e, dev.Reset(e.Ctx()))
	for _, c := range calls {
		e.Log(c.Name)
		require.ErrorIs(e, e.Wait(c), bridge.ErrDeviceLost)
	}
	for i, op := range Operations {
		require.ErrorIs(e, op.Do(e.Ctx(), ports[i]), bridge.ErrDeviceLost, op.Name)
		require.NoError(e, ports[i].Close())
	}
	require.Zero(e, dev.Stats().Blocked)
}

// resetWorksAgain: after a reset the device is as new, under the next epoch.
func resetWorksAgain(e *Env) {
	dev := e.device("")
	p := e.Start(dev, "loopback", 1)
	e.Echo(e.Subscribe(dev, p.First), []byte("before"))
	epoch := dev.Info().Epoch
	require.NoError(e, dev.Reset(e.Ctx()))
	require.Equal(e, epoch+1, dev.Info().Epoch)
	require.EqualValues(e, 1, dev.Stats().Resets)
	_, err := dev.Subscribe(e.Ctx(), p.First)
	require.ErrorIs(e, err, bridge.ErrNotSubscribed, "processes end with their epoch")
	e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("service"))
	ch := e.Ports(dev, "loopback", 1)[0]
	e.Echo(ch, []byte("process"))
	e.EchoInd(ch, 100_000, 3)
	e.health(dev)
}

// movers keeps transfers under way on n channels until they fail.
func (e *Env) movers(dev bridge.Device, n int) []*Pending {
	e.Helper()
	var calls []*Pending
	for i, ch := range e.Ports(dev, "loopback", n) {
		calls = append(calls, Call("mover", func() error {
			for {
				if err := echoTransfer(e.Ctx(), ch, 3<<20, uint64(i)); err != nil {
					return err
				}
			}
		}))
	}
	e.Until("lists sent", func() bool { return dev.Stats().Lists > 0 })
	return calls
}

// resetDuringTransfers: transfers that move are ended by a reset as well.
func resetDuringTransfers(e *Env) {
	dev := e.device("")
	for range max(2, Scaled(10)) {
		calls := e.movers(dev, 4)
		require.NoError(e, dev.Reset(e.Ctx()))
		for _, c := range calls {
			require.ErrorIs(e, e.Wait(c), bridge.ErrDeviceLost)
		}
	}
	e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("alive"))
}

// resetOften: resets in a row leave nothing behind, and epochs wrap in slots.
func resetOften(e *Env) {
	dev := e.device("")
	n := max(30, Scaled(300))
	for range n {
		require.NoError(e, dev.Reset(e.Ctx()))
	}
	require.EqualValues(e, n, dev.Stats().Resets)
	e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("alive"))
}

// resetProcesses: the id of a process of an epoch that is over is no other process's.
func resetProcesses(e *Env) {
	dev := e.device("")
	old := e.Start(dev, "hold", 1)
	require.NoError(e, dev.Reset(e.Ctx()))
	next := e.Start(dev, "hold", 1)
	require.Equal(e, old.First, next.First, "or this test shows nothing")
	require.NotEqual(e, old.ID, next.ID)
	runs, err := dev.Running(e.Ctx(), old.ID)
	require.NoError(e, err)
	require.False(e, runs)
	require.ErrorIs(e, dev.Stop(e.Ctx(), old.ID), bridge.ErrInvalid)
	require.NoError(e, dev.Stop(e.Ctx(), next.ID), "it still ran")
}

// resetCalls: a call that was given its epoch takes effect in no other.
func resetCalls(e *Env) {
	dev := e.device("")
	in := func() context.Context { return bridge.InEpoch(e.Ctx(), dev.Info().Epoch) }
	before := in()
	_, err := dev.Start(before, bridge.Program{Name: "hold", First: 40, Targets: 1})
	require.NoError(e, err)
	require.NoError(e, dev.Reset(before))
	epoch := dev.Info().Epoch
	for name, call := range map[string]func(ctx context.Context) error{
		"subscribe": func(ctx context.Context) error {
			ch, err := dev.Subscribe(ctx, abi.TargetLoopback)
			if err == nil {
				require.NoError(e, ch.Close())
			}
			return err
		},
		"start": func(ctx context.Context) error {
			p, err := dev.Start(ctx, bridge.Program{Name: "hold", First: 40, Targets: 1})
			if err == nil {
				require.NoError(e, dev.Stop(ctx, p.ID))
			}
			return err
		},
		"programs": func(ctx context.Context) error { _, err := dev.Programs(ctx); return err },
		"memory":   func(ctx context.Context) error { _, err := dev.Memory(ctx, abi.EMEM); return err },
		"running":  func(ctx context.Context) error { _, err := dev.Running(ctx, 1); return err },
	} {
		require.ErrorIs(e, call(before), bridge.ErrReset, name)
		require.NoError(e, call(in()), name)
		require.NoError(e, call(bridge.InEpoch(e.Ctx(), 0)), "%s: in any", name)
	}
	_, err = dev.Load(before, []byte("image"))
	require.ErrorIs(e, err, bridge.ErrReset)
	require.ErrorIs(e, dev.Stop(before, 1), bridge.ErrReset)
	require.NoError(e, dev.Reset(before), "that epoch has ended")
	require.Equal(e, epoch, dev.Info().Epoch, "and no other did")
}

// resetHalfWay: a reset whose context ends while a call is still at work returns, as does one that
// waits behind another. The old channels are lost, and the next reset restores the device.
func resetHalfWay(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	require.NoError(e, ch.Send(e.Ctx(), []byte("held")))
	inside, release := make(chan struct{}), make(chan struct{})
	held := Call("held", func() error {
		return ch.ReceiveFunc(e.Ctx(), func([]byte) error {
			close(inside)
			<-release
			return nil
		})
	})
	<-inside
	ctx, cancel := context.WithCancel(e.Ctx())
	reset := Call("reset", func() error { return dev.Reset(ctx) })
	e.Until("the channel is lost", func() bool {
		_, err := ch.TrySend(nil, nil)
		return errors.Is(err, bridge.ErrDeviceLost)
	})
	cancel()
	require.ErrorIs(e, e.Wait(reset), context.Canceled)
	patient := Call("reset", func() error { return dev.Reset(e.Ctx()) })
	brief, cancel := context.WithTimeout(e.Ctx(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(e, dev.Reset(brief), context.DeadlineExceeded)
	close(release)
	require.NoError(e, e.Wait(patient))
	require.ErrorIs(e, e.Wait(held), bridge.ErrDeviceLost)
	require.Zero(e, dev.Stats().Channels)
	e.Echo(e.Ports(dev, "loopback", 1)[0], []byte("again"))
	require.ErrorIs(e, ch.Send(e.Ctx(), nil), bridge.ErrDeviceLost)
	require.NoError(e, ch.Close())
}

// deviceClosePending: closing the device ends every pending call.
func deviceClosePending(e *Env) {
	dev := e.device("")
	calls, ports := e.blockAll(dev)
	require.NoError(e, dev.Close())
	for _, c := range calls {
		e.Log(c.Name)
		require.ErrorIs(e, e.Wait(c), bridge.ErrClosed)
	}
	for i, op := range Operations {
		require.ErrorIs(e, op.Do(e.Ctx(), ports[i]), bridge.ErrClosed, op.Name)
		require.NoError(e, ports[i].Close())
	}
}

// deviceCloseDuringTransfers: also while bytes move; whatever the device still
// does afterwards must not touch memory that is gone.
func deviceCloseDuringTransfers(e *Env) {
	for range max(2, Scaled(10)) {
		dev := e.device("")
		calls := e.movers(dev, 4)
		require.NoError(e, dev.Close())
		for _, c := range calls {
			require.ErrorIs(e, e.Wait(c), bridge.ErrClosed)
		}
	}
}

// deviceUseAfterClose: a closed device refuses every call.
func deviceUseAfterClose(e *Env) {
	dev := e.device("")
	info := dev.Info()
	require.NoError(e, dev.Close())
	_, err := dev.Subscribe(e.Ctx(), abi.TargetLoopback)
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Start(e.Ctx(), bridge.Program{Name: "hold", Targets: 1})
	require.ErrorIs(e, err, bridge.ErrClosed)
	require.ErrorIs(e, dev.Stop(e.Ctx(), 1), bridge.ErrClosed)
	_, err = dev.Load(e.Ctx(), []byte("image"))
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Programs(e.Ctx())
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Memory(e.Ctx(), abi.EMEM)
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Health()
	require.ErrorIs(e, err, bridge.ErrClosed)
	require.ErrorIs(e, dev.Reset(e.Ctx()), bridge.ErrClosed)
	require.Equal(e, info, dev.Info())
	dev.Stats()
	require.NoError(e, dev.Close())
}

package scripted

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// quickStall is a host that soon asks what has become of an offer or a transfer.
var quickStall = &mailbox.Options{Stall: 100 * time.Millisecond}

// loss is something that gets lost on its way, once.
type loss struct {
	name string
	call string // of deviationCalls
	take func(m *wire.Slot) bool
	give func(m *wire.Slot) bool
	// lost: what became of a message is unknown, so the device is lost.
	lost bool
}

// listOf matches gather list k of a direction.
func listOf(d abi.Direction, k uint16) func(m *wire.Slot) bool {
	return func(m *wire.Slot) bool {
		return of(wire.TypeIndList)(m) && m.Gather().Number() == k &&
			(wire.Header(m.Header).Length()&wire.ListD2H != 0) == (d == abi.D2H)
	}
}

// recordOf matches completion records of a type and direction.
func recordOf(t wire.Type, d abi.Direction) func(m *wire.Slot) bool {
	return func(m *wire.Slot) bool { return of(t)(m) && m.Ack().Direction == uint32(d) }
}

var losses = []loss{
	{name: "DIRECT", call: "Send", take: of(wire.TypeDirect), lost: true},
	{name: "ACK", call: "Send", give: ackOf(wire.StateConsumed, abi.H2D), lost: true},
	{name: "IND_BEGIN", call: "SendInd", take: of(wire.TypeIndBegin), lost: true},
	{name: "list 0", call: "SendInd", take: listOf(abi.H2D, 0)},
	{name: "READY", call: "SendInd", give: ackOf(wire.StateReady, abi.H2D)},
	{name: "last list", call: "SendInd", take: listOf(abi.H2D, stallLists-1)},
	{name: "DONE", call: "SendInd", give: recordOf(wire.TypeDone, abi.H2D)},
	{name: "DONE of one list", call: "SendInd short", give: recordOf(wire.TypeDone, abi.H2D)},
	{name: "last list", call: "ReceiveInd", take: listOf(abi.D2H, stallLists-1)},
	{name: "DONE", call: "ReceiveInd", give: recordOf(wire.TypeDone, abi.D2H)},
}

// stallLists is the number of lists of the transfers below.
const stallLists = 5

const stallSize = stallLists*wire.ListEntries*abi.PageSize - 3*abi.PageSize

// TestLoss: a device that beats, but loses one message of its own or of the host,
// ends the call by itself. Where the host can tell that nothing was delivered the
// device continues; else it is lost.
func TestLoss(t *testing.T) {
	e := bridgetest.NewEnv(t)
	rigs := make([]*rig, len(losses))
	chs := make([]bridge.Channel, len(losses))
	calls := make([]*bridgetest.Pending, len(losses))
	for i, l := range losses { // at once: each takes as long as the host has patience
		r := newRigOf(e, quickBeat, quickStall)
		ch := r.Subscribe(r.dev, abi.TargetLoopback)
		r.s.SetHooks(l.hooks())
		rigs[i], chs[i] = r, ch
		calls[i] = bridgetest.Call(l.call+"/"+l.name, func() error { return stallCall(r, ch, l.call) })
	}
	for i, l := range losses {
		r, name, err := rigs[i], calls[i].Name, e.Wait(calls[i])
		if l.lost {
			require.ErrorIs(t, err, bridge.ErrDeviceLost, name)
			r.recovers()
			continue
		}
		require.ErrorIs(t, err, bridge.ErrStalled, name)
		r.s.SetHooks(Hooks{})
		require.NoError(t, chs[i].Close(), name)
		ch := r.Ports(r.dev, "loopback", 1)[0]
		r.Echo(ch, []byte("the device goes on"))
		r.EchoInd(ch, stallSize, 7)
		require.Zero(t, r.dev.Stats().Faults, name)
	}
}

// hooks lose the message, once.
func (l loss) hooks() Hooks {
	gone := false
	once := func(match func(m *wire.Slot) bool, m *wire.Slot) bool {
		if gone || !match(m) {
			return false
		}
		gone = true
		return true
	}
	if l.take != nil {
		return Hooks{Take: func(m *wire.Slot) bool { return !once(l.take, m) }}
	}
	return Hooks{Give: func(m wire.Slot) []wire.Slot {
		if once(l.give, &m) {
			return nil
		}
		return only(m)
	}}
}

// stallCall makes the call that meets the loss; no context ends it.
func stallCall(r *rig, ch bridge.Channel, name string) error {
	data := make([]byte, stallSize)
	switch name {
	case "Send":
		return ch.Send(r.Ctx(), []byte("x"))
	case "SendInd short":
		return ch.SendInd(r.Ctx(), data[:100])
	case "SendInd":
		return ch.SendInd(r.Ctx(), data)
	default:
		require.NoError(r, ch.SendInd(r.Ctx(), data))
		return ch.ReceiveInd(r.Ctx(), data)
	}
}

// TestWaitingIsNoLoss: beside a transfer that lost its DONE many calls only wait
// for their target. They are asked as well, and stay where they are: each is
// delivered once its target reads.
func TestWaitingIsNoLoss(t *testing.T) {
	r := newRigOf(bridgetest.NewEnv(t), quickBeat, quickStall)
	const n = 8
	var gates [n][]bridge.Channel
	var calls [n]*bridgetest.Pending
	for i := range gates {
		gates[i] = r.Ports(r.dev, "gate", 2)
		calls[i] = bridgetest.Call("offer", func() error {
			if i%2 == 0 {
				return gates[i][1].Send(r.Ctx(), make([]byte, i))
			}
			return gates[i][1].SendInd(r.Ctx(), make([]byte, stallSize+i))
		})
	}
	r.UntilBlocked(r.dev, n)
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	asked := make(map[uint32]int)
	r.s.SetHooks(Hooks{
		Give: func(m wire.Slot) []wire.Slot {
			if of(wire.TypeDone)(&m) {
				return nil
			}
			return only(m)
		},
		Take: func(m *wire.Slot) bool {
			if of(wire.TypeWithdraw)(m) {
				asked[wire.Header(m.Header).Channel()]++
			}
			return true
		},
	})
	require.ErrorIs(t, ch.SendInd(r.Ctx(), make([]byte, 100)), bridge.ErrStalled)
	r.s.SetHooks(Hooks{})
	require.Len(t, asked, n+1)
	for i, ports := range gates {
		require.False(t, calls[i].Over(), "call %d waits on", i)
		require.NoError(t, ports[0].Send(r.Ctx(), nil))
		require.NoError(t, r.Wait(calls[i]))
		buf := make([]byte, 56)
		_, err := ports[0].Receive(r.Ctx(), buf)
		require.NoError(t, err)
		size := i
		if i%2 != 0 {
			size += stallSize
		}
		require.Equal(t, pattern.Words(uint64(i%2), uint64(size)), buf[:16])
	}
	require.Empty(t, r.s.Offences())
	require.Zero(t, r.dev.Stats().Faults)
}

// TestQuietHostAsksNothing: calls that wait for their target cost no message as long
// as the device knows of all of them.
func TestQuietHostAsksNothing(t *testing.T) {
	r := newRigOf(bridgetest.NewEnv(t), quickBeat, quickStall)
	const n = 30
	ports := r.Ports(r.dev, "hold", n)
	ctx, cancel := context.WithCancel(r.Ctx())
	var calls []*bridgetest.Pending
	for i, ch := range ports {
		calls = append(calls, bridgetest.Call("offer", func() error {
			if i%2 == 0 {
				return ch.Send(ctx, nil)
			}
			return ch.SendInd(ctx, make([]byte, stallSize))
		}))
	}
	r.Until("the device says that it has all offers", func() bool {
		h, err := r.dev.Health()
		return err == nil && h.Queued == n
	})
	taken := r.s.Taken()
	r.passes(5 * quickStall.Stall)
	require.Equal(t, taken, r.s.Taken())
	cancel()
	for _, c := range calls {
		require.ErrorIs(t, r.Wait(c), bridge.ErrWithdrawn)
	}
}

// passes lets time pass in which nothing may happen.
func (r *rig) passes(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Ctx().Done():
	}
}

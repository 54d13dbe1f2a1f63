package bridgetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var ledgerCases = []testCase{
	{"ledger/echoes-agree", ledgerEchoes},
	{"ledger/sink-agrees", ledgerSink},
	{"ledger/closes", ledgerCloses},
}

// entry is what one side of the ledger holds: what was sent or received.
type entry struct {
	id       uint64
	indirect bool
}

// ledger runs random calls on one channel to a loopback and keeps both sides.
type ledger struct {
	ctx       context.Context
	ch        bridge.Channel
	base      uint64 // ids start here
	max       int    // bytes of the largest transfer
	wrong     bool   // some receives are of a wrong kind or size
	mortal    bool   // the device may be reset, the process stopped
	ops       atomic.Int64
	faults    atomic.Int64 // calls that ended with an error
	delivered []entry      // sends that returned nil, in order
	received  []entry
	// lost[n] is the number of transfers that an aborted receive may have
	// ended after n receives: the device knows that they were not delivered.
	lost map[int]int
}

// lastID marks the message that ends a ledger.
const lastID = ^uint64(0)

// someContext returns a context that ends never, at once or at any moment.
func someContext(parent context.Context, random *rand.Rand) (context.Context, context.CancelFunc) {
	switch random.IntN(10) {
	case 0:
		ctx, cancel := context.WithCancel(parent)
		cancel()
		return ctx, cancel
	case 1, 2:
		return context.WithTimeout(parent, time.Duration(random.IntN(200))*time.Microsecond)
	case 3, 4:
		ctx, cancel := context.WithCancel(parent)
		go cancel()
		return ctx, cancel
	default:
		return parent, func() {}
	}
}

// outcome checks the error of a call: only the context or a close may end it.
func outcome(ctx context.Context, what string, err error) error {
	if err == nil || errors.Is(err, bridge.ErrClosed) {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	// The device keeps the deadline as well, and its clock may be ahead.
	if _, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("%s: %w, context %v", what, err, ctx.Err())
}

// body is what travels under an id.
func body(id uint64, n int) []byte {
	b := make([]byte, n)
	pattern.Fill(b, 0, id)
	binary.LittleEndian.PutUint64(b, id)
	return b
}

// bodyID returns the id of a body, or an error if it was changed.
func bodyID(b []byte) (uint64, error) {
	if len(b) < 8 {
		return 0, fmt.Errorf("received %d bytes", len(b))
	}
	id := binary.LittleEndian.Uint64(b)
	if i := pattern.Diff(b[8:], 8, id); id != lastID && i >= 0 {
		return 0, fmt.Errorf("byte %d of %d under id %d changed", i+8, len(b), id)
	}
	return id, nil
}

// send makes n random sends; it stops early when the channel is closed.
func (l *ledger) send(seed uint64, n int) error {
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		id := l.base + uint64(i)
		ctx, cancel := someContext(l.ctx, random)
		indirect := random.IntN(3) == 0
		var err error
		if indirect {
			err = l.ch.SendInd(ctx, body(id, 8+random.IntN(l.max)))
		} else {
			err = l.ch.Send(ctx, body(id, 8+random.IntN(abi.PayloadSize-7)))
		}
		over, bad := l.note(ctx, "send", err)
		cancel()
		if err == nil {
			l.delivered = append(l.delivered, entry{id, indirect})
		}
		if over || bad != nil {
			return bad
		}
	}
	return nil
}

// receive makes random receives until the last message or a close.
func (l *ledger) receive(seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 2))
	buf := make([]byte, 8+l.max)
	for {
		ctx, cancel := someContext(l.ctx, random)
		e, err := l.receiveOne(ctx, buf, random)
		over, bad := l.note(ctx, "receive", err)
		cancel()
		if err == nil && e.id != lastID {
			l.received = append(l.received, e)
		}
		if over || bad != nil || err == nil && e.id == lastID {
			return bad
		}
	}
}

// note counts a call, and says whether it was the last one or ended as none may.
func (l *ledger) note(ctx context.Context, what string, err error) (over bool, bad error) {
	l.ops.Add(1)
	if err == nil {
		return false, nil
	}
	l.faults.Add(1)
	switch {
	case l.mortal && (errors.Is(err, bridge.ErrDeviceLost) || errors.Is(err, bridge.ErrStopped)):
		return true, nil
	case l.wrong && (errors.Is(err, bridge.ErrSizeMismatch) || errors.Is(err, bridge.ErrKindMismatch)):
		return false, nil
	}
	return errors.Is(err, bridge.ErrClosed), outcome(ctx, what, err)
}

// receiveOne takes whatever is next.
func (l *ledger) receiveOne(ctx context.Context, buf []byte, random *rand.Rand) (e entry, err error) {
	o, err := l.ch.Next(ctx)
	if err != nil {
		return e, err
	}
	e.indirect = o.Indirect
	n := int(o.Size)
	if l.wrong && o.Indirect && random.IntN(16) == 0 {
		if random.IntN(2) == 0 {
			_, err = l.ch.Receive(ctx, buf)
			return e, err
		}
		return e, l.ch.ReceiveInd(ctx, buf[:n-1])
	}
	if o.Indirect {
		if err = l.ch.ReceiveInd(ctx, buf[:n]); err != nil {
			l.lost[len(l.received)]++
		}
	} else {
		n, err = l.ch.Receive(ctx, buf)
	}
	if err == nil {
		e.id, err = bodyID(buf[:n])
	}
	return e, err
}

// compare holds the sides against each other. Behind what was received, left
// more deliveries may be missing.
func (l *ledger) compare(left int) error {
	j := 0
	for i, d := range l.delivered {
		switch {
		case j < len(l.received) && l.received[j] == d:
			j++
		case d.indirect && l.lost[j] > 0:
			l.lost[j]--
		case j == len(l.received) && len(l.delivered)-i <= left:
			return nil
		default:
			return fmt.Errorf("delivered %+v at %d, received %+v at %d", d, i, l.received[j:min(j+3, len(l.received))], j)
		}
	}
	if j < len(l.received) {
		return fmt.Errorf("received %+v that nobody delivered", l.received[j])
	}
	return nil
}

// ledgerEchoes: of random sends and receives, cancelled at random moments, each
// that returned nil happened exactly once and each that did not never.
func ledgerEchoes(e *Env) {
	const channels = 8
	dev := e.device("managers=2")
	most := Scaled(100_000)
	if testing.Short() {
		most /= 5 // calls take some milliseconds each on an emulated machine
	}
	var total atomic.Int64
	var calls []*Pending
	for i, ch := range e.Ports(dev, "loopback", channels) {
		calls = append(calls, Call("ledger", func() error {
			l := &ledger{ctx: e.Ctx(), ch: ch, max: 30_000, lost: map[int]int{}}
			receiver := Call("receiver", func() error { return l.receive(uint64(i)) })
			err := l.send(uint64(i), most/channels)
			err = errors.Join(err, ch.Send(e.Ctx(), pattern.Words(lastID)))
			err = errors.Join(err, <-receiver.done)
			total.Add(l.ops.Load())
			return errors.Join(err, l.compare(0))
		}))
	}
	for _, p := range calls {
		require.NoError(e, e.Wait(p))
	}
	require.GreaterOrEqual(e, total.Load(), int64(most))
	require.Zero(e, dev.Stats().Faults)
	require.Zero(e, dev.Stats().Blocked)
}

// ledgerSink: the same with the device as the other side of the ledger.
func ledgerSink(e *Env) {
	const channels = 4
	dev := e.device("managers=2")
	var calls []*Pending
	for i := range channels {
		ch := e.Ports(dev, "sink", 1)[0]
		calls = append(calls, Call("ledger", func() error {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			var messages, count uint64
			for range Scaled(20_000) / channels {
				ctx, cancel := someContext(e.Ctx(), random)
				size := random.IntN(20_000)
				var err error
				if random.IntN(2) == 0 {
					err = ch.SendInd(ctx, make([]byte, size))
				} else if err = ch.Send(ctx, make([]byte, size%57)); err == nil {
					messages, size = messages+1, 0
				}
				if err == nil {
					count += uint64(size)
				}
				err = outcome(ctx, "send", err)
				cancel()
				if err != nil {
					return err
				}
			}
			return sinkAgrees(e.Ctx(), ch, messages, count)
		}))
	}
	for _, p := range calls {
		require.NoError(e, e.Wait(p))
	}
}

// sinkAgrees compares a ledger with what a sink says.
func sinkAgrees(ctx context.Context, ch bridge.Channel, messages, count uint64) error {
	if err := ch.Send(ctx, []byte(pattern.SinkQuery)); err != nil {
		return err
	}
	var buf [abi.PayloadSize]byte
	if _, err := ch.Receive(ctx, buf[:]); err != nil {
		return err
	}
	m, c := binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint64(buf[8:])
	if m != messages || c != count {
		return fmt.Errorf("host delivered %d messages and %d bytes, device took %d and %d", messages, count, m, c)
	}
	return nil
}

// ledgerCloses: channels that close at random moments lose at most the one
// thing that the device held, and nothing of it reaches the next subscriber.
func ledgerCloses(e *Env) {
	const channels = 4
	dev := e.device("managers=2")
	var calls []*Pending
	for i, target := range e.apart(dev, "loopback", channels) {
		calls = append(calls, Call("subscriber", func() error {
			random := rand.New(rand.NewPCG(uint64(i), 4))
			for round := range uint64(max(10, Scaled(200))) {
				if err := closedLedger(e, dev, target, round, random); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			return nil
		}))
	}
	for _, c := range calls {
		require.NoError(e, e.Wait(c))
	}
	require.Zero(e, dev.Stats().Faults)
}

// closedLedger subscribes, works, and closes in the middle of it.
func closedLedger(e *Env, dev bridge.Device, t bridge.Target, round uint64, random *rand.Rand) error {
	ch, err := e.subscribe(e.Ctx(), dev, t)
	if err != nil {
		return err
	}
	l := &ledger{ctx: e.Ctx(), ch: ch, base: round << 32, max: 30_000, lost: map[int]int{}}
	seed := random.Uint64()
	sender := Call("sender", func() error { return l.send(seed, 1_000_000) })
	receiver := Call("receiver", func() error { return l.receive(round) })
	for after := random.Int64N(60); l.ops.Load() < after; {
		time.Sleep(10 * time.Microsecond)
	}
	err = ch.Close()
	return errors.Join(err, <-sender.done, <-receiver.done, l.compare(1))
}

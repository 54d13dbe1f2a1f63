package mailbox

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var (
	liesFlag = flag.Uint64("lies", 10_000, "bad replies that TestHostileReplies tells")
	liesSeed = flag.Uint64("lies.seed", 0, "seed of TestHostileReplies; 0 takes one from the clock")
)

// Operations of a half during a round.
const (
	resting = iota
	message
	transferring
)

// liar is a device that serves calls, and sends wrong replies between its honest steps.
type liar struct {
	*fake
	rand *rand.Rand
	dev  *device
	ch   *channel

	id    [2]uint64 // the last transaction the host knows, by direction
	doing [2]int
	cut   [2]proto.Split
	sent  [2]uint64 // lists of the transfer that the host sent
	ready bool      // of the transfer to the device
	calls [2]func() error
	out   *arena
	in    *arena
	got   int // bytes of the message received

	told, total uint64
	by          []uint64 // wrong replies sent, by their index
	end         [3]uint64
}

// arena is a buffer between canaries, used again and again.
type arena struct{ all, data []byte }

// listBytes is what a gather list of full pages holds.
const listBytes = wire.ListEntries * abi.PageSize

const arenaGuard = 512

func newArena() *arena {
	return &arena{all: pages(3*listBytes + 2*arenaGuard)}
}

// size makes data n bytes long, between canaries.
func (a *arena) size(n int) {
	a.data = a.all[arenaGuard:][:n:n]
	for i := range arenaGuard {
		a.all[i], a.all[arenaGuard+n+i] = 0x5c, 0x5c
	}
}

func (a *arena) fill(seed byte) {
	for i := range a.data {
		a.data[i] = byte(i)*7 + seed
	}
}

func (a *arena) intact() bool {
	after := a.all[arenaGuard+len(a.data):][:arenaGuard]
	return bytes.Count(a.all[:arenaGuard], []byte{0x5c}) == arenaGuard && bytes.Count(after, []byte{0x5c}) == arenaGuard
}

// TestHostileReplies: whatever a device puts, calls end with an error that has
// a name or with the right bytes, in time, and a reset makes the device whole.
// A campaign is -lies 10000000.
func TestHostileReplies(t *testing.T) {
	seed := *liesSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (-lies.seed)", seed)
	f := newFakeBeating(t, 2000)
	l := &liar{fake: f, dev: f.open(), out: newArena(), in: newArena(), by: make([]uint64, len(lies))}
	l.rand = rand.New(rand.NewPCG(seed, 0))
	l.ch = f.subscribe(l.dev)
	start := time.Now()
	for l.total < *liesFlag {
		l.round()
	}
	runtime.GC() // finds what stayed pinned
	require.Zero(t, l.dev.blocked.Load())
	for i, n := range l.by {
		require.True(t, n > 0 || *liesFlag < 1_000_000, "never told: %s", lies[i].name)
		t.Logf("%9d %s", n, lies[i].name)
	}
	t.Logf("%d lies in %v; rounds that ended honestly %d, with a fault %d, with the device lost %d",
		l.total, time.Since(start).Round(time.Millisecond), l.end[0], l.end[1], l.end[2])
}

// round has a call or two under way, sends wrong replies, and ends them.
func (l *liar) round() {
	l.begin()
	l.stale()
	if l.rand.IntN(3) == 0 && l.finish() {
		l.end[0]++
		return
	}
	open := l.rand.IntN(2) * l.rand.IntN(8)
	for i := 0; i < open && l.ch.ep.err() == nil; i++ {
		l.give(either)
	}
	for l.ch.ep.err() == nil {
		l.give(latched)
		require.True(l.t, open > 0 || l.ch.ep.err() != nil, "lie %s is believed", l.last())
	}
	l.ended(open > 0)
}

// last names the last wrong reply, for messages.
func (l *liar) last() string { return lies[l.told].name }

// give sends one wrong reply and lets the host take it.
func (l *liar) give(want classification) {
	for {
		k := l.rand.IntN(len(lies))
		if lies[k].want != want || lies[k].when != nil && !lies[k].when(l) {
			continue
		}
		h, s := lies[k].make(l)
		l.told = uint64(k)
		l.place(fakeMailbox, h, s)
		l.by[k]++
		l.total++
		l.ch.mailbox.drain()
		return
	}
}

// stale sends replies to past questions, each of which must be counted.
func (l *liar) stale() {
	for range l.below(8) {
		before := l.dev.dropped.Load()
		l.give(dropped)
		if err := l.ch.ep.err(); err != nil {
			require.ErrorIs(l.t, err, bridge.ErrDeviceLost, "lie %s", l.last())
			return
		}
		require.Equal(l.t, before+1, l.dev.dropped.Load(), "lie %s is not counted", l.last())
	}
}

// sizeOf picks the size of a transfer: up to three lists, mostly little.
func (l *liar) sizeOf() int {
	if l.rand.IntN(8) == 0 {
		return 1 + l.rand.IntN(3*listBytes-abi.PageSize)
	}
	return 1 + l.rand.IntN(300)
}

// begin starts calls and takes the first slot of each.
func (l *liar) begin() {
	l.doing = [2]int{l.rand.IntN(3), l.rand.IntN(3)}
	l.calls, l.sent, l.cut, l.ready = [2]func() error{}, [2]uint64{}, [2]proto.Split{}, false
	ctx := context.Background()
	switch l.doing[abi.H2D] {
	case message:
		l.out.size(l.rand.IntN(full + 1))
		l.out.fill(byte(l.total))
		l.calls[abi.H2D] = l.async(func() error { return l.ch.Send(ctx, l.out.data) })
		l.id[abi.H2D]++
		s := l.expect(fakeMailbox, wire.TypeDirect)
		require.Equal(l.t, l.out.data, s.Bytes()[:wire.Header(s.Header).Length()])
	case transferring:
		l.out.size(l.sizeOf())
		l.out.fill(byte(l.total))
		l.calls[abi.H2D] = l.async(func() error { return l.ch.SendInd(ctx, l.out.data) })
		l.id[abi.H2D]++
		l.expect(fakeMailbox, wire.TypeIndBegin)
		l.cut[abi.H2D] = cutOf(l.out.data)
		l.source(1)
	}
	switch l.doing[abi.D2H] {
	case message:
		l.in.size(full)
		l.calls[abi.D2H] = l.async(func() (err error) {
			l.got, err = l.ch.Receive(ctx, l.in.data)
			return err
		})
	case transferring:
		l.in.size(l.sizeOf())
		l.in.fill(0)
		l.cut[abi.D2H] = cutOf(l.in.data)
		l.id[abi.D2H]++
		l.fake.begin(l.id[abi.D2H], uint64(len(l.in.data)))
		l.calls[abi.D2H] = l.async(func() error { return l.ch.ReceiveInd(ctx, l.in.data) })
		l.destination()
	}
}

func cutOf(b []byte) proto.Split {
	return proto.Split{Address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), Size: uint64(len(b))}
}

// source takes lists of the transfer to the device, up to a number, and
// compares what they name.
func (l *liar) source(to uint64) {
	from := l.sent[abi.H2D]
	got := l.lists(l.id[abi.H2D], int(from), int(to), 0)
	want := l.out.data[l.cut[abi.H2D].UpTo(from):l.cut[abi.H2D].UpTo(to)]
	require.True(l.t, bytes.Equal(want, got), "lists %d..%d name other bytes", from, to)
	l.sent[abi.H2D] = to
}

// destination takes the lists of the transfer to the host and writes what they
// name.
func (l *liar) destination() {
	n := l.cut[abi.D2H].Lists()
	at := 0
	for range n {
		s := l.expect(fakeMailbox, wire.TypeIndList)
		for _, e := range s.Gather().Entry[:wire.Header(s.Header).Length()&wire.ListCountMask] {
			for i, to := 0, dma(e); i < len(to); i++ {
				to[i] = byte(at)*5 + 1
				at++
			}
		}
	}
	require.Equal(l.t, int(l.cut[abi.D2H].Size), at)
	l.sent[abi.D2H] = n
}

// finish ends the calls as an honest device does, with replies to past questions in
// between; false if the machine was too slow for the heartbeat.
func (l *liar) finish() bool {
	l.finishSend()
	l.stale()
	l.finishReceive()
	if errors.Is(l.ch.ep.err(), bridge.ErrDeviceLost) {
		return false
	}
	for d, wait := range l.calls {
		if wait != nil {
			require.NoError(l.t, wait(), "half %d, seed and lies before it in the log", d)
		}
	}
	l.calls = [2]func() error{}
	l.right(nil, nil)
	return true
}

func (l *liar) finishSend() {
	id := l.id[abi.H2D]
	switch l.doing[abi.H2D] {
	case message:
		l.ack(wire.TypeAck, wire.Ack{Transaction: id, State: wire.StateConsumed})
	case transferring:
		if n := l.cut[abi.H2D].Lists(); n > 1 {
			l.ack(wire.TypeAck, wire.Ack{Transaction: id, State: wire.StateReady})
			l.ready = true
			l.source(n)
			l.stale()
		}
		l.ack(wire.TypeDone, done(id, abi.H2D, len(l.out.data)))
		l.expect(fakeMailbox, wire.TypeFin)
	}
	l.doing[abi.H2D] = resting
}

func (l *liar) finishReceive() {
	switch l.doing[abi.D2H] {
	case message:
		l.id[abi.D2H]++
		l.fake.message(l.id[abi.D2H], fmt.Sprint("message ", l.id[abi.D2H]))
		l.expect(fakeMailbox, wire.TypeAck)
	case transferring:
		l.ack(wire.TypeAck, moving(l.id[abi.D2H], abi.D2H, int(l.sent[abi.D2H]), l.cut[abi.D2H]))
		l.stale()
		l.ack(wire.TypeDone, done(l.id[abi.D2H], abi.D2H, len(l.in.data)))
		l.expect(fakeMailbox, wire.TypeFin)
	}
}

// right requires what a call that worked has brought, and that no other byte
// changed.
func (l *liar) right(send, receive error) {
	if l.doing[abi.D2H] == transferring && receive == nil {
		for i, b := range l.in.data {
			require.Equal(l.t, byte(i)*5+1, b, "byte %d", i)
		}
	}
	if l.doing[abi.D2H] == message && receive == nil {
		require.Equal(l.t, fmt.Sprint("message ", l.id[abi.D2H]), string(l.in.data[:l.got]))
	}
	require.True(l.t, l.in.data == nil || l.in.intact(), "bytes outside of a buffer changed")
	require.True(l.t, l.out.data == nil || l.out.intact(), "bytes around a source changed")
}

// ended requires that the device is latched and that calls return why, then
// resets. With open, a wrong reply may have ended them before, in its own way.
func (l *liar) ended(open bool) {
	why := l.ch.ep.err()
	<-l.ch.ep.fenced
	lost := errors.Is(why, bridge.ErrDeviceLost)
	if lost {
		l.end[2]++
	} else {
		require.ErrorIs(l.t, why, bridge.ErrFault, "after %s", l.last())
		l.end[1]++
	}
	for d, wait := range l.calls {
		if wait == nil {
			continue
		}
		err := wait()
		if open || lost {
			requireNamed(l.t, err)
		} else {
			require.ErrorIs(l.t, err, bridge.ErrFault, "half %d after %s", d, l.last())
		}
		if d == int(abi.D2H) && l.doing[d] == transferring {
			l.right(nil, err)
		}
	}
	require.Zero(l.t, l.dev.blocked.Load(), "a call still waits")
	require.NoError(l.t, l.dev.Reset(context.Background()))
	l.ch = l.subscribe(l.dev)
	l.id, l.calls = [2]uint64{}, [2]func() error{}
}

// requireNamed accepts nil and every error of the contract.
func requireNamed(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if _, ok := bridge.StatusOf(err); !ok {
		require.NoError(t, err, "an error without a name")
	}
}

package bridgetest

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// moves sends an end through a channel, and returns it as the far host has it.
func (p *hostPair) moves(end, from, to bridge.Channel) bridge.Channel {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Ctx())
	done := make(chan error, 1)
	go func() {
		err := from.(bridge.Mover).SendChannel(ctx, end)
		if err != nil {
			cancel() // nothing is sent
		}
		done <- err
	}()
	got, err := to.(bridge.Mover).ReceiveChannel(ctx)
	require.NoError(p, <-done)
	require.NoError(p, err)
	cancel()
	return got
}

// hostMove: an end moves there and back with what is offered to it, and the old one is of no use.
func hostMove(p *hostPair) {
	near, far := p.channel()
	a, b := p.channel()
	sent := p.gives(p.Ctx(), near, word(1))
	for i := range 20 {
		offer, err := far.Next(p.Ctx())
		require.NoError(p, err)
		require.Equal(p, bridge.Offer{Size: 8}, offer)
		there := p.moves(far, b, a)
		require.Equal(p, far.Target(), there.Target())
		requireMoved(p, far)
		p.takes(there, word(2*i+1))
		require.NoError(p, <-sent)
		data := make([]byte, 100_000)
		moved := make(chan error, 1)
		go func() { moved <- near.SendInd(p.Ctx(), body(uint64(i), len(data))) }()
		_, err = there.Next(p.Ctx())
		require.NoError(p, err)
		far = p.moves(there, a, b)
		require.NoError(p, far.ReceiveInd(p.Ctx(), data))
		require.Equal(p, body(uint64(i), len(data)), data)
		require.NoError(p, <-moved)
		done := p.gives(p.Ctx(), far, word(2*i+2))
		p.takes(near, word(2*i+2))
		require.NoError(p, <-done)
		sent = p.gives(p.Ctx(), near, word(2*i+3))
	}
	p.takes(far, word(41))
	require.NoError(p, <-sent)
	p.closes(near, far, a, b)
}

// requireMoved requires that the calls of an end say that it is elsewhere.
func requireMoved(p *hostPair, end bridge.Channel) {
	p.Helper()
	require.ErrorIs(p, end.Send(p.Ctx(), nil), bridge.ErrMoved)
	_, err := end.Receive(p.Ctx(), nil)
	require.ErrorIs(p, err, bridge.ErrMoved)
	require.ErrorIs(p, err, bridge.ErrClosed)
	require.ErrorIs(p, end.Arm(abi.D2H, make(chan struct{}, 1)), bridge.ErrMoved)
	require.NoError(p, end.Close())
}

// closes closes channels.
func (p *hostPair) closes(all ...bridge.Channel) {
	p.Helper()
	for _, ch := range all {
		require.NoError(p, ch.Close())
	}
}

// hostMoveHalf: a half that is closed is closed where the end is received.
func hostMoveHalf(p *hostPair) {
	near, far := p.channel()
	a, b := p.channel()
	require.NoError(p, far.CloseSend())
	far = p.moves(far, b, a)
	require.ErrorIs(p, far.Send(p.Ctx(), nil), bridge.ErrClosed)
	sent := p.gives(p.Ctx(), near, word(1))
	p.takes(far, word(1))
	require.NoError(p, <-sent)
	far = p.moves(far, a, b)
	require.ErrorIs(p, far.Send(p.Ctx(), nil), bridge.ErrClosed)
	require.NoError(p, near.CloseSend())
	_, err := far.Receive(p.Ctx(), nil)
	require.ErrorIs(p, err, bridge.ErrClosed)
	require.ErrorIs(p, b.(bridge.Mover).SendChannel(p.Ctx(), far), bridge.ErrClosed)
	p.closes(near, far, a, b)
}

// hostMoveRefused: what does not move stays, and works.
func hostMoveRefused(p *hostPair) {
	near, far := p.channel()
	a, b := p.channel()
	send := func(ctx context.Context, end bridge.Channel) error { return b.(bridge.Mover).SendChannel(ctx, end) }
	loop, err := p.listens.Subscribe(p.Ctx(), abi.TargetLoopback)
	require.NoError(p, err)
	require.ErrorIs(p, send(p.Ctx(), b), bridge.ErrInvalid)
	require.ErrorIs(p, send(p.Ctx(), nil), bridge.ErrInvalid)
	require.ErrorIs(p, send(p.Ctx(), loop), bridge.ErrNotSupported)
	require.ErrorIs(p, loop.(bridge.Mover).SendChannel(p.Ctx(), far), bridge.ErrNotSupported)
	_, err = loop.(bridge.Mover).ReceiveChannel(p.Ctx())
	require.ErrorIs(p, err, bridge.ErrNotSupported)
	if p.listens != p.connects {
		require.ErrorIs(p, send(p.Ctx(), near), bridge.ErrInvalid)
	} else {
		require.ErrorIs(p, send(p.Ctx(), a), bridge.ErrInvalid) // its own other end
	}
	require.NoError(p, loop.Close())

	ctx, cancel := context.WithCancel(p.Ctx())
	cancel()
	require.ErrorIs(p, send(ctx, far), bridge.ErrWithdrawn)
	wake := make(chan struct{}, 1)
	for _, d := range []abi.Direction{abi.H2D, abi.D2H} {
		require.NoError(p, far.Arm(d, wake))
		require.ErrorIs(p, send(p.Ctx(), far), bridge.ErrBusy)
		far.Disarm(d, wake)
	}
	sent := p.gives(p.Ctx(), far, word(1))
	_, err = near.Next(p.Ctx())
	require.NoError(p, err)
	require.ErrorIs(p, send(p.Ctx(), far), bridge.ErrBusy)
	p.takes(near, word(1))
	require.NoError(p, <-sent)

	p.closes(far)
	require.ErrorIs(p, send(p.Ctx(), far), bridge.ErrClosed)
	p.closes(near, a, b)
}

// hostMoveAsBytes: a ticket that is received as a message moves nothing, and neither does a message that
// is received as an end.
func hostMoveAsBytes(p *hostPair) {
	near, far := p.channel()
	a, b := p.channel()
	moved := make(chan error, 1)
	go func() { moved <- b.(bridge.Mover).SendChannel(p.Ctx(), far) }()
	n, err := a.Receive(p.Ctx(), make([]byte, abi.PayloadSize))
	require.NoError(p, err)
	require.Equal(p, abi.PayloadSize, n)
	require.ErrorIs(p, <-moved, bridge.ErrKindMismatch)
	sent := p.gives(p.Ctx(), b, word(1))
	_, err = a.(bridge.Mover).ReceiveChannel(p.Ctx())
	require.ErrorIs(p, err, bridge.ErrKindMismatch)
	p.takes(a, word(1))
	require.NoError(p, <-sent)
	sent = p.gives(p.Ctx(), near, word(2))
	p.takes(far, word(2)) // it is still here
	require.NoError(p, <-sent)
	p.closes(near, far, a, b)
}

// hostMoveRaces: sends of ends, their receives and messages cross each other, and their contexts end at any
// time. The end is at one host, which takes each message once.
func hostMoveRaces(p *hostPair) {
	const moves = 150
	p.movesAtRandom(moves)
}

// movesAtRandom tries to move an end so many times, between hosts whose contexts end at any time. Both
// ledgers agree: that of the messages that were sent to it, and that of those taken wherever it was.
func (p *hostPair) movesAtRandom(moves int) {
	near, end := p.channel()
	via := [2]bridge.Channel{}
	via[0], via[1] = p.channel()
	var over atomic.Bool
	sent := make(chan []int, 1)
	go func() { defer close(sent); sent <- p.sendsInHaste(near, &over) }()
	defer func() { // also if a move fails: it must not report after the test
		over.Store(true)
		_ = near.Close() // a send that waits ends
		<-sent
	}()
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	var taken []int
	at, moved := 1, 0
	for range moves {
		taken = p.takesSome(random, end, taken)
		if there := p.movesOrNot(random, end, via[at], via[1-at]); there != nil {
			requireMoved(p, end)
			end, at = there, 1-at
			moved++
		}
	}
	p.Logf("%d of %d sends of the end were cancelled", moves-moved, moves)
	over.Store(true)
	for len(taken) == 0 || taken[len(taken)-1] >= 0 {
		taken = p.takesNext(p.Ctx(), end, taken)
		require.NoError(p, p.Ctx().Err())
	}
	require.Equal(p, <-sent, taken[:len(taken)-1])
	p.closes(near, end, via[0], via[1])
}

// movesOrNot has one host send an end, and the other one receive it, with contexts that end at any time.
// It returns the end as the other has it, nil if it has not moved.
func (p *hostPair) movesOrNot(random *rand.Rand, end, from, to bridge.Channel) (there bridge.Channel) {
	p.Helper()
	ctx, cancel := someContext(p.Ctx(), random)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- from.(bridge.Mover).SendChannel(ctx, end) }()
	for {
		ctx, cancel := someContext(p.Ctx(), random)
		if ctx.Done() == p.Ctx().Done() { // the sender may give up
			ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
		}
		got, err := to.(bridge.Mover).ReceiveChannel(ctx)
		cancel()
		if err == nil {
			require.NoError(p, <-result)
			return got
		}
		require.ErrorIs(p, err, bridge.ErrWithdrawn)
		select {
		case err := <-result:
			require.ErrorIs(p, err, bridge.ErrWithdrawn)
			return nil
		default:
		}
	}
}

// sendsInHaste sends numbers until it is over, with contexts that end at any time, and then a last one,
// which is less than 0. It returns those that were taken.
func (p *hostPair) sendsInHaste(ch bridge.Channel, over *atomic.Bool) (sent []int) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for i := 0; !over.Load(); i++ {
		ctx, cancel := someContext(p.Ctx(), random)
		err := ch.Send(ctx, word(i))
		cancel()
		if err == nil {
			sent = append(sent, i)
		} else if !assert.ErrorIs(p, err, bridge.ErrWithdrawn) {
			return sent
		}
	}
	assert.NoError(p, ch.Send(p.Ctx(), word(-1)))
	return sent
}

// takesSome takes a few messages, or none.
func (p *hostPair) takesSome(random *rand.Rand, ch bridge.Channel, taken []int) []int {
	for range random.IntN(3) {
		ctx, cancel := context.WithTimeout(p.Ctx(), time.Duration(random.IntN(200))*time.Microsecond)
		taken = p.takesNext(ctx, ch, taken)
		cancel()
	}
	return taken
}

// takesNext takes a message, unless the context ends.
func (p *hostPair) takesNext(ctx context.Context, ch bridge.Channel, taken []int) []int {
	p.Helper()
	buf := make([]byte, 8)
	_, err := ch.Receive(ctx, buf)
	if err != nil {
		require.ErrorIs(p, err, bridge.ErrWithdrawn)
		return taken
	}
	return append(taken, int(binary.LittleEndian.Uint64(buf)))
}

// hostMoveGoes: an end is not its former host's, and closes with the one that has it.
func hostMoveGoes(p *hostPair) {
	if p.connects == p.listens {
		return // it takes all ends with it
	}
	_, far := p.channel()
	a, b := p.channel()
	moved := make(chan error, 1)
	go func() { moved <- b.(bridge.Mover).SendChannel(p.Ctx(), far) }()
	_, err := a.Next(p.Ctx())
	require.NoError(p, err)
	require.NoError(p, p.connects.Reset(p.Ctx()))
	require.ErrorIs(p, <-moved, bridge.ErrClosed)
	_, err = far.Receive(p.Ctx(), nil)
	require.ErrorIs(p, err, bridge.ErrClosed)
	require.NotErrorIs(p, err, bridge.ErrMoved)
	p.closes(far, b)

	near, far := p.channel()
	a, b = p.channel()
	far = p.moves(far, b, a)
	require.NoError(p, p.listens.Reset(p.Ctx()))
	p.l = p.listen()
	sent := p.gives(p.Ctx(), near, []byte("it is elsewhere"))
	p.takes(far, []byte("it is elsewhere"))
	require.NoError(p, <-sent)
	_, err = a.(bridge.Mover).ReceiveChannel(p.Ctx())
	require.ErrorIs(p, err, bridge.ErrClosed)
	p.closes(near, far, a)
}

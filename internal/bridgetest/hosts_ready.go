package bridgetest

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// tries sends a message by tries until one is taken.
func (p *hostPair) tries(ch bridge.Channel, msg []byte) {
	p.Helper()
	p.Until("the other host waits", func() bool {
		ok, err := ch.TrySend(msg, nil)
		require.NoError(p, err)
		return ok
	})
}

// hostTry: a try is taken by a host that waits, and by no other.
func hostTry(p *hostPair) {
	near, far := p.channel()
	ok, err := near.TrySend([]byte("nobody waits"), nil)
	require.NoError(p, err)
	require.False(p, ok)
	_, ok, err = far.TryNext()
	require.NoError(p, err)
	require.False(p, ok, "nothing stays")
	for i := range 20 {
		got := make(chan int, 1)
		go func() {
			var buf [8]byte
			_, err := far.Receive(p.Ctx(), buf[:])
			assert.NoError(p, err)
			got <- int(binary.LittleEndian.Uint64(buf[:]))
		}()
		p.tries(near, word(i))
		require.Equal(p, i, <-got)
		near, far = far, near
	}
	ctx, cancel := context.WithTimeout(p.Ctx(), time.Millisecond)
	defer cancel()
	_, err = far.Receive(ctx, nil)
	require.ErrorIs(p, err, bridge.ErrWithdrawn, "what was not taken is not there")
	require.NoError(p, far.CloseReceive())
	p.Until("the other host hears of it", func() bool {
		_, err := near.TrySend(nil, nil)
		return err != nil
	})
	_, err = near.TrySend(nil, nil)
	require.ErrorIs(p, err, bridge.ErrClosed)
}

// hostTryRaces: of messages that are tried against receives that are cancelled each is received
// once or not at all, and both sides agree. A waiter continues if the offer that woke it was
// withdrawn.
func hostTryRaces(p *hostPair) {
	const messages = 300
	near, far := p.channel()
	taken := p.takesInHaste(far, 300)
	var sent []int
	for i := range messages {
		ok, err := near.TrySend(word(i), nil)
		require.NoError(p, err)
		if ok {
			sent = append(sent, i)
		}
	}
	require.NoError(p, near.Send(p.Ctx(), nil))
	require.Equal(p, sent, <-taken)
}

// hostTryInd: the same for transfers, which a host that waits takes whole.
func hostTryInd(p *hostPair) {
	near, far := p.channel()
	for _, size := range []int{0, 100, 200_000} {
		data, got := filled(size, 3, byte(size)), make([]byte, size)
		ok, err := near.TrySendInd(p.Ctx(), data, nil)
		require.NoError(p, err)
		require.False(p, ok)
		received := make(chan error, 1)
		go func() { received <- far.ReceiveInd(p.Ctx(), got) }()
		p.Until("the other host waits", func() bool {
			ok, err = near.TrySendInd(p.Ctx(), data, nil)
			require.NoError(p, err)
			return ok
		})
		require.NoError(p, <-received)
		require.Equal(p, data, got)
	}
}

// armed waits with a waiter of each channel until one of them is ready, and tries; false when ctx ends.
func (p *hostPair) armed(ctx context.Context, direction abi.Direction, ch bridge.Channel, try func(wake chan<- struct{}) (bool, error)) error {
	wake := make(chan struct{}, 1)
	defer ch.Disarm(direction, wake)
	for {
		if err := ch.Arm(direction, wake); err != nil {
			return err
		}
		if ok, err := try(wake); ok || err != nil {
			return err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hostArmedSend: a waiter that sends is woken when the other host waits, by a call or by a waiter.
func hostArmedSend(p *hostPair) {
	near, far := p.channel()
	for i := range 20 {
		got := make(chan []byte, 1)
		go func() {
			buf := make([]byte, 8)
			receive := func(chan<- struct{}) (bool, error) {
				_, ok, err := far.TryReceive(buf)
				return ok, err
			}
			var err error
			if i%2 == 0 {
				_, err = far.Receive(p.Ctx(), buf)
			} else {
				err = p.armed(p.Ctx(), abi.D2H, far, receive)
			}
			assert.NoError(p, err)
			got <- buf
		}()
		require.NoError(p, p.armed(p.Ctx(), abi.H2D, near, func(wake chan<- struct{}) (bool, error) {
			return near.TrySend(word(i), wake)
		}))
		require.Equal(p, word(i), <-got)
		near, far = far, near
	}
}

// hostArmedLeaves: a waiter that was asked, or woken, and leaves, holds nobody up.
func hostArmedLeaves(p *hostPair) {
	near, far := p.channel()
	wake := make(chan struct{}, 1)
	require.NoError(p, near.Arm(abi.H2D, wake))
	near.Disarm(abi.H2D, wake)
	sent := p.gives(p.Ctx(), near, []byte("a plain one"))
	p.takes(far, []byte("a plain one"))
	require.NoError(p, <-sent)

	require.NoError(p, far.Arm(abi.D2H, wake))
	ok, err := near.TrySend([]byte("for a waiter that does not come"), nil)
	require.NoError(p, err)
	require.False(p, ok)
	far.Disarm(abi.D2H, wake)
	sent = p.gives(p.Ctx(), near, []byte("another"))
	p.takes(far, []byte("another"))
	require.NoError(p, <-sent)

	require.NoError(p, near.Arm(abi.H2D, wake))
	require.NoError(p, far.Close())
	<-wake // it is ready, as it refuses
	near.Disarm(abi.H2D, wake)
	require.NoError(p, near.Close())
}

// hostArmedBoth: two hosts that each wait to send to the other, or to receive from it, meet again
// and again, exactly one way each time. Messages and transfers take turns; the two ways may be
// separate channels.
func hostArmedBoth(p *hostPair) {
	near, far := p.channel()
	p.meet(200, [2]bridge.Channel{near, far}, [2]bridge.Channel{near, far})
	near2, far2 := p.channel()
	p.meet(50, [2]bridge.Channel{near, far2}, [2]bridge.Channel{near2, far})
}

// meet has two hosts send or receive so often, on channels of their own.
func (p *hostPair) meet(rounds int, to, from [2]bridge.Channel) {
	sizes := []int{0, 100, 0, 200_000} // 0: a message
	var sent, got [2][]int
	var wg sync.WaitGroup
	for side := range to {
		wg.Go(func() {
			for i := range rounds {
				n, err := p.either(to[side], from[side], i, sizes[i%len(sizes)])
				if !assert.NoError(p, err, "%d", i) {
					return
				}
				if n < 0 {
					sent[side] = append(sent[side], i)
				} else {
					got[side] = append(got[side], n)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(p, sent[0], got[1])
	require.Equal(p, sent[1], got[0])
}

// either sends a number, for which it returns -1, or receives one, whichever is ready first: in a
// message, or a transfer of so many bytes.
func (p *hostPair) either(to, from bridge.Channel, i, size int) (n int, err error) {
	wake := make(chan struct{}, 1)
	ch := []bridge.Channel{abi.H2D: to, abi.D2H: from}
	defer from.Disarm(abi.D2H, wake)
	defer to.Disarm(abi.H2D, wake)
	out, in := make([]byte, max(8, size)), make([]byte, max(8, size))
	binary.LittleEndian.PutUint64(out, uint64(i))
	try := []func() (bool, error){
		abi.H2D: func() (bool, error) { return to.TrySend(out, wake) },
		abi.D2H: func() (ok bool, err error) { _, ok, err = from.TryReceive(in); return },
	}
	if size > 0 {
		try[abi.H2D] = func() (bool, error) { return to.TrySendInd(p.Ctx(), out, wake) }
		try[abi.D2H] = func() (bool, error) { return from.TryReceiveInd(p.Ctx(), in) }
	}
	for {
		for _, d := range rand.Perm(2) {
			if err := ch[d].Arm(abi.Direction(d), wake); err != nil {
				return 0, err
			}
		}
		for _, d := range rand.Perm(2) {
			ok, err := try[d]()
			if !ok && err == nil {
				continue
			}
			if abi.Direction(d) == abi.H2D {
				return -1, err
			}
			return int(binary.LittleEndian.Uint64(in)), err
		}
		select {
		case <-wake:
		case <-p.Ctx().Done():
			return 0, p.Ctx().Err()
		}
	}
}

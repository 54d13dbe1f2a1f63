package bridgetest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// hostSizes are those of transfers: nothing, within a page, of pages that either side gives at once, of
// a few lists, and of more than a window's parts.
var hostSizes = []int{0, 1, 4096, 5000, 16 << 10, 64 << 10, 64<<10 + 1, 300_000, 5 << 20}

// filled returns n bytes of a seed, that start so far into memory of their own.
func filled(n, into int, seed byte) []byte {
	b := make([]byte, n+into)[into:]
	for i := range b {
		b[i] = seed + byte(i) + byte(i>>8)
	}
	return b
}

// givesInd is gives for a transfer.
func (p *hostPair) givesInd(ctx context.Context, ch bridge.Channel, data []byte) <-chan error {
	done := make(chan error, 1)
	go func() { done <- ch.SendInd(ctx, data) }()
	return done
}

// takesInd requires the next transfer of a channel.
func (p *hostPair) takesInd(ch bridge.Channel, want []byte) {
	p.Helper()
	got := make([]byte, len(want))
	require.NoError(p, ch.ReceiveInd(p.Ctx(), got))
	require.True(p, bytes.Equal(want, got), "%d bytes", len(want))
}

// hostTransfers: the bytes of one host arrive at the other, in either order of waiting.
func hostTransfers(p *hostPair) {
	near, far := p.channel()
	for i, size := range hostSizes {
		for round := range 4 {
			data := filled(size, round*13, byte(i))
			sent := p.givesInd(p.Ctx(), near, data)
			if round%2 == 0 {
				o, err := far.Next(p.Ctx())
				require.NoError(p, err)
				require.Equal(p, bridge.Offer{Indirect: true, Size: uint64(size)}, o)
			}
			p.takesInd(far, data)
			require.NoError(p, <-sent)
			near, far = far, near
		}
	}
	p.mixed(near, far)
}

// mixed: messages and transfers keep their order.
func (p *hostPair) mixed(near, far bridge.Channel) {
	data := filled(100_000, 0, 3)
	done := make(chan error, 1)
	go func() {
		for i := range 10 {
			err := near.Send(p.Ctx(), word(i))
			if err == nil {
				err = near.SendInd(p.Ctx(), data[:1000*i])
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for i := range 10 {
		p.takes(far, word(i))
		p.takesInd(far, data[:1000*i])
	}
	require.NoError(p, <-done)
}

// hostTransfersAtOnce: many channels, and both halves of each, move at the same time.
func hostTransfersAtOnce(p *hostPair) {
	const channels, rounds = 4, 10
	results := make(chan error, 4*channels)
	for c := range channels {
		near, far := p.channel()
		for d, ends := range [][2]bridge.Channel{{near, far}, {far, near}} {
			data := filled(150_000*(c+1), 0, byte(2*c+d))
			go func() {
				for range rounds {
					if err := ends[0].SendInd(p.Ctx(), data); err != nil {
						results <- err
						return
					}
				}
				results <- nil
			}()
			go func() {
				got := make([]byte, len(data))
				for range rounds {
					clear(got)
					if err := ends[1].ReceiveInd(p.Ctx(), got); err != nil {
						results <- err
						return
					}
					assert.True(p, bytes.Equal(data, got))
				}
				results <- nil
			}()
		}
	}
	for range 4 * channels {
		require.NoError(p, <-results)
	}
}

// hostTransferRendezvous: a transfer is sent when the other host took it, and not when its bytes are
// there; one that is not taken after all has failed.
func hostTransferRendezvous(p *hostPair) {
	near, far := p.channel()
	for _, size := range []int{0, 100, 200_000} {
		data, got := filled(size, 0, 5), make([]byte, size)
		place := func() ([]byte, error) { return got, nil }
		sent := p.givesInd(p.Ctx(), near, data)
		require.NoError(p, far.ReceiveIndFunc(p.Ctx(), uint64(size), place, func(b []byte) error {
			require.True(p, bytes.Equal(data, b))
			select {
			case err := <-sent:
				require.Fail(p, "sent before it was taken", "%v", err)
			default:
			}
			return nil
		}))
		require.NoError(p, <-sent)
		sent = p.givesInd(p.Ctx(), near, data)
		require.ErrorIs(p, far.ReceiveIndFunc(p.Ctx(), uint64(size), place, func([]byte) error { return context.Canceled }), context.Canceled)
		require.ErrorIs(p, <-sent, bridge.ErrAborted)
	}
	sent := p.givesInd(p.Ctx(), near, []byte("still works"))
	p.takesInd(far, []byte("still works"))
	require.NoError(p, <-sent)
}

// hostTransferMismatch: what does not fit stays offered, as one of a device process.
func hostTransferMismatch(p *hostPair) {
	near, far := p.channel()
	data := filled(5000, 0, 1)
	sent := p.givesInd(p.Ctx(), near, data)
	_, err := far.Receive(p.Ctx(), make([]byte, abi.PayloadSize))
	require.ErrorIs(p, err, bridge.ErrKindMismatch)
	var size *bridge.SizeError
	require.ErrorAs(p, far.ReceiveInd(p.Ctx(), make([]byte, 4999)), &size)
	require.Equal(p, bridge.SizeError{Host: 4999, Device: 5000}, *size)
	p.takesInd(far, data)
	require.NoError(p, <-sent)
	sent = p.gives(p.Ctx(), near, []byte("a message"))
	require.ErrorIs(p, far.ReceiveInd(p.Ctx(), make([]byte, 9)), bridge.ErrKindMismatch)
	p.takes(far, []byte("a message"))
	require.NoError(p, <-sent)
}

// hostTransferCancel: what is cancelled before it is taken is not delivered, and nobody is notified
// of it.
func hostTransferCancel(p *hostPair) {
	near, far := p.channel()
	for i := range 20 {
		ctx, cancel := context.WithCancel(p.Ctx())
		sent := p.givesInd(ctx, near, filled(100+50_000*(i%3), 0, 7))
		if i%2 == 0 { // the other host has it before it
			_, err := far.Next(p.Ctx())
			require.NoError(p, err)
		}
		cancel()
		p.IsWithdrawn(<-sent, context.Canceled)
		ctx, cancel = context.WithCancel(p.Ctx())
		received := make(chan error, 1)
		go func() { received <- far.ReceiveInd(ctx, make([]byte, 100)) }()
		cancel()
		p.IsWithdrawn(<-received, context.Canceled)
	}
	ctx, cancel := context.WithTimeout(p.Ctx(), time.Millisecond)
	defer cancel()
	require.ErrorIs(p, near.SendInd(ctx, make([]byte, 100)), bridge.ErrWithdrawn)
	data := filled(100_000, 0, 9)
	sent := p.givesInd(p.Ctx(), near, data)
	p.takesInd(far, data)
	require.NoError(p, <-sent)
}

// hostTransferCancelRaces: of a transfer that either host cancels as it moves both say the same. A
// transfer that was not taken did not change memory that its caller has again.
func hostTransferCancelRaces(p *hostPair) {
	const transfers = 200
	near, far := p.channel()
	taken := make(chan []byte)
	go func() {
		var got []byte
		for {
			ctx, cancel := context.WithTimeout(p.Ctx(), time.Duration(rand.IntN(2000))*time.Microsecond)
			o, err := far.Next(ctx)
			if err == nil && !o.Indirect {
				_, err = far.Receive(p.Ctx(), nil)
				assert.NoError(p, err)
				cancel()
				taken <- got
				return
			}
			buf := make([]byte, o.Size)
			if err == nil {
				err = far.ReceiveInd(ctx, buf)
			}
			cancel()
			kept := bytes.Clone(buf)
			switch {
			case err == nil && len(buf) > 0:
				got = append(got, buf[0])
				assert.Equal(p, -1, bytes.IndexFunc(buf, func(r rune) bool { return byte(r) != buf[0] }))
			case err != nil:
				time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
				assert.True(p, bytes.Equal(kept, buf), "written after the call")
			}
		}
	}()
	var sent []byte
	for i := range transfers {
		mark := byte(i % 100)
		data := bytes.Repeat([]byte{mark}, []int{100, 10_000, 100_000, 1_000_000}[i%4])
		ctx, cancel := context.WithTimeout(p.Ctx(), time.Duration(rand.IntN(2000))*time.Microsecond)
		err := near.SendInd(ctx, data)
		cancel()
		for j := range data { // it is the caller's again
			data[j] = 0xff
		}
		if err == nil {
			sent = append(sent, mark)
		}
	}
	require.NoError(p, near.Send(p.Ctx(), nil))
	require.Equal(p, sent, <-taken)
}

// hostTransferClose: a close ends what waits at the other end, and what moves.
func hostTransferClose(p *hostPair) {
	for _, size := range []int{100, 100_000} {
		near, far := p.channel()
		sent := p.givesInd(p.Ctx(), near, make([]byte, size))
		_, err := far.Next(p.Ctx())
		require.NoError(p, err)
		received := make(chan error, 1)
		go func() { received <- near.ReceiveInd(p.Ctx(), make([]byte, size)) }()
		require.NoError(p, far.Close())
		require.ErrorIs(p, <-sent, bridge.ErrClosed)
		require.ErrorIs(p, <-received, bridge.ErrClosed)
		require.NoError(p, near.Close())
	}
}

// hostTransferGoes: a host that goes ends what it gives and what it takes, at any moment.
func hostTransferGoes(p *hostPair) {
	if p.connects == p.listens {
		return // it takes both ends with it
	}
	for range 5 {
		near, far := p.channel()
		results := make(chan error, 2)
		for i, ends := range [][2]bridge.Channel{{near, far}, {far, near}} {
			data := filled(1<<20, 0, byte(i))
			go func() {
				for ends[0].SendInd(p.Ctx(), data) == nil {
				}
			}()
			go func() {
				var err error
				for got := make([]byte, len(data)); err == nil; {
					err = ends[1].ReceiveInd(p.Ctx(), got)
				}
				results <- err
			}()
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
		require.NoError(p, p.connects.Reset(p.Ctx()))
		for range 2 {
			require.Error(p, <-results)
		}
	}
	near, far := p.channel()
	sent := p.givesInd(p.Ctx(), near, []byte("it comes back"))
	p.takesInd(far, []byte("it comes back"))
	require.NoError(p, <-sent)
}

// hostTakesAndGoes: what a host received before it went was delivered, if it goes at once.
func hostTakesAndGoes(p *hostPair) {
	if p.connects == p.listens {
		return // it takes both ends with it
	}
	data := filled(20000, 0, 1)
	for i := range 30 {
		near, far := p.channel()
		if i%2 == 0 {
			sent := p.gives(p.Ctx(), far, []byte("take me"))
			p.takes(near, []byte("take me"))
			require.NoError(p, p.connects.Reset(p.Ctx()))
			require.NoError(p, <-sent)
			continue
		}
		sent := p.givesInd(p.Ctx(), far, data)
		p.takesInd(near, data)
		require.NoError(p, p.connects.Reset(p.Ctx()))
		require.NoError(p, <-sent)
	}
}

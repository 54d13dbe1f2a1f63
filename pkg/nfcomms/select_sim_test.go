//go:build cgo

package nfcomms

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestSelectsAndSendersAreQueued: while the loopback waits for a receiver, Selects and
// plain senders are queued one after the other; it takes what they have in that order. A caller
// is counted shortly before it has its place, so that others may be in between if it loses
// its processor there: not in each of some tries.
func TestSelectsAndSendersAreQueued(t *testing.T) {
	const tries, between = 10, 5
	for range tries {
		if overtaken(t) <= between {
			return
		}
	}
	t.Errorf("in each of %d tries a caller was overtaken by more than %d", tries, between)
}

// overtaken queues callers of all kinds one after the other, and returns by how many places one
// was served too late or too soon.
func overtaken(t *testing.T) (worst int) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	require.NoError(t, ch.Send(ctx, []byte{0})) // which waits to be received
	kinds := []func(msg []byte) error{
		func(msg []byte) error { return ch.Send(ctx, msg) },
		func(msg []byte) error {
			_, err := Select(ctx, SendCase(ch, msg), GoReceive[int](nil, nil, nil))
			return err
		},
		func(msg []byte) error {
			_, err := Select(ctx, SendIndCase(ch, msg))
			return err
		},
	}
	const n = 60
	var callers sync.WaitGroup
	for i := range n {
		call := kinds[rand.IntN(len(kinds))]
		callers.Go(func() { assert.NoError(t, call([]byte{byte(i + 1)})) })
		require.Eventually(t, func() bool {
			h := ch.ch.Halves().H2D
			return h.Waiting+h.Armed == i+1
		}, time.Minute, 10*time.Microsecond, "%d", i)
	}
	var msg [8]byte
	for i := range n + 1 {
		got, err := ch.Receive(ctx, msg[:])
		if errors.Is(err, ErrKindMismatch) {
			got, err = ch.ReceiveInd(ctx, msg[:], 1)
		}
		require.NoError(t, err)
		require.Equal(t, 1, got)
		worst = max(worst, int(msg[0])-i, i-int(msg[0]))
	}
	callers.Wait()
	return worst
}

// TestSelectsOnOneHalfAreAllWoken: many Selects wait for the offers of one
// process, and each of them gets one.
func TestSelectsOnOneHalfAreAllWoken(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	const n = 100
	var got sync.WaitGroup
	for range n {
		got.Go(func() {
			i, err := Select(ctx, ReceiveCase(ch, make([]byte, 8), nil))
			assert.NoError(t, err)
			assert.Zero(t, i)
		})
	}
	for range n {
		require.NoError(t, ch.Send(ctx, []byte("x")))
	}
	got.Wait()
}

// TestSelectWaitsForAnotherReceiver: while another call receives a case that
// receives is not ready; it does not fail, and it is woken afterwards.
func TestSelectWaitsForAnotherReceiver(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	ch := startSim(t, dev, "loopback", 1)[0]
	first := make(chan error, 1)
	go func() { _, err := ch.Receive(ctx, make([]byte, 8)); first <- err }()
	for dev.Stats().Blocked == 0 {
		time.Sleep(time.Millisecond)
	}
	selected := make(chan error, 1)
	go func() { _, err := Select(ctx, ReceiveCase(ch, make([]byte, 8), nil)); selected <- err }()
	require.NoError(t, ch.Send(ctx, []byte("1")))
	require.NoError(t, <-first)
	require.NoError(t, ch.Send(ctx, []byte("2")))
	require.NoError(t, <-selected)
}

// TestSelectTransfers: a transfer each way, and looking at what is offered.
func TestSelectTransfers(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	for _, n := range []int{0, 1, 56, 5000, 300_000} {
		out, back := make([]byte, n), make([]byte, n)
		for i := range out {
			out[i] = byte(i * 31)
		}
		var offer Offer
		i, err := Select(ctx, OfferCase(ch, &offer), SendIndCase(ch, out))
		require.NoError(t, err)
		require.Equal(t, 1, i)
		i, err = Select(ctx, OfferCase(ch, &offer))
		require.NoError(t, err)
		require.Zero(t, i)
		require.Equal(t, Offer{Indirect: true, Size: uint64(n)}, offer)
		// A case that does not fit leaves it there.
		_, err = Select(ctx, ReceiveCase(ch, back, nil))
		require.ErrorIs(t, err, ErrKindMismatch)
		_, err = Select(ctx, ReceiveIndCase(ch, make([]byte, n+1)))
		require.ErrorIs(t, err, ErrSizeMismatch)
		i, err = Select(ctx, ReceiveIndCase(ch, back), Default())
		require.NoError(t, err)
		require.Zero(t, i)
		require.Equal(t, out, back)
	}
	var word uint64 = 0x1234
	_, err := Select(ctx, SendIndCase(ch, word))
	require.NoError(t, err)
	var came uint64
	_, err = Select(ctx, ReceiveIndCase(ch, &came))
	require.NoError(t, err)
	require.Equal(t, word, came)
	i, err := Select(ctx, ReceiveIndCase(ch, []byte{1}), Default())
	require.NoError(t, err)
	require.Equal(t, 1, i)
	for _, c := range []Case{SendIndCase(ch, &struct{ p *int }{}), ReceiveIndCase(ch, "text"), SendIndCase(ch, []byte{1}, 2)} {
		i, err := Select(ctx, c)
		require.Zero(t, i)
		require.Error(t, err)
	}
	for _, c := range []Case{SendIndCase(nil, nil), ReceiveIndCase(nil, nil), OfferCase(nil, nil)} {
		i, err := Select(ctx, c, Default())
		require.NoError(t, err)
		require.Equal(t, 1, i)
	}
}

// TestSelectAbortsATransferThatBegan: once chosen, the case is as SendInd is.
func TestSelectAbortsATransferThatBegan(t *testing.T) {
	dev := openSim(t, "sim:")
	ch := startSim(t, dev, "sink", 1)[0]
	for range 50 {
		ctx, cancel := context.WithCancel(background(t))
		data := make([]byte, 8<<20)
		go func() {
			for dev.Stats().Transfers == (bridge.Both[int]{}) && ctx.Err() == nil {
				time.Sleep(10 * time.Microsecond)
			}
			cancel()
		}()
		i, err := Select(ctx, SendIndCase(ch, data))
		cancel()
		if err == nil || i >= 0 {
			require.Zero(t, i)
		}
		if err != nil {
			require.ErrorIs(t, err, ErrWithdrawn)
		}
	}
	require.NoError(t, ch.SendInd(background(t), make([]byte, 100)), "the channel goes on")
}

// TestSelectEndsWithTheDevice: a Select that sleeps ends with a reset.
func TestSelectEndsWithTheDevice(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	chs := startSim(t, dev, "hold", 2)
	errs := make(chan error)
	for _, c := range []Case{SendCase(chs[0], nil), SendIndCase(chs[0], []byte{1}), ReceiveCase(chs[1], nil, nil), OfferCase(chs[1], nil)} {
		go func() { _, err := Select(ctx, c); errs <- err }()
	}
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, dev.Reset(ctx))
	for range 4 {
		require.ErrorIs(t, <-errs, ErrDeviceLost)
	}
}

// TestSelectExactlyOneOnADevice lets callers of every kind end at any moment,
// and holds what they say against what the process counted.
func TestSelectExactlyOneOnADevice(t *testing.T) {
	dev := openSim(t, "sim:")
	ch := startSim(t, dev, "sink", 1)[0]
	var messages, transfers atomic.Uint64
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for i := range 300 {
				ctx, cancel := context.WithTimeout(background(t), time.Duration(i%7)*50*time.Microsecond)
				var err error
				switch (k + i) % 3 {
				case 0:
					_, err = Select(ctx, SendCase(ch, make([]byte, 9)))
					count(&messages, err)
				case 1:
					_, err = Select(ctx, SendIndCase(ch, make([]byte, 7000)))
					count(&transfers, err)
				case 2:
					count(&messages, ch.Send(ctx, make([]byte, 9)))
				}
				cancel()
				if err != nil && !errors.Is(err, ErrWithdrawn) {
					assert.NoError(t, err)
				}
			}
		})
	}
	all.Wait()
	ctx := background(t)
	require.NoError(t, ch.Send(ctx, []byte("SINKSTAT")))
	var buf [24]byte
	_, err := ch.Receive(ctx, buf[:])
	require.NoError(t, err)
	assert.Equal(t, messages.Load(), binary.LittleEndian.Uint64(buf[0:]))
	assert.Equal(t, transfers.Load()*7000, binary.LittleEndian.Uint64(buf[8:]))
}

func count(n *atomic.Uint64, err error) {
	if err == nil {
		n.Add(1)
	}
}

package bridgetest

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// givesMemory reports whether the hosts share memory. Where they do not, a region stays, and its error says so.
func (p *hostPair) givesMemory() bool {
	p.Helper()
	s, ok := p.connects.(bridge.Sharer)
	if ok {
		_, _, err := s.Share(-1)
		ok = !errors.Is(err, bridge.ErrNotSupported)
	}
	if ok {
		return true
	}
	near, far := p.channel()
	r := p.region(p.connects, 100)
	require.ErrorIs(p, sendRegion(p.Ctx(), near, r), bridge.ErrNotSupported)
	require.Len(p, r.Bytes(), 100)
	require.NoError(p, r.Close())
	p.closes(near, far)
	return false
}

func sendRegion(ctx context.Context, ch bridge.Channel, r bridge.Region) error {
	return ch.(bridge.Mover).SendRegion(ctx, r)
}

func receiveRegion(ctx context.Context, ch bridge.Channel) (bridge.Region, error) {
	return ch.(bridge.Mover).ReceiveRegion(ctx)
}

// region returns memory of Alloc.
func (p *hostPair) region(of bridge.Device, size int) bridge.Region {
	p.Helper()
	r, err := of.Alloc(size)
	require.NoError(p, err)
	return r
}

// hands gives a region to the other host, and returns it as that has it.
func (p *hostPair) hands(r bridge.Region, from, to bridge.Channel) bridge.Region {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Ctx())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := sendRegion(ctx, from, r)
		if err != nil {
			cancel() // nothing is sent
		}
		done <- err
	}()
	got, err := receiveRegion(ctx, to)
	require.NoError(p, <-done)
	require.NoError(p, err)
	return got
}

// hostGive: memory is given to and fro with its bytes, is as good as any for transfers, and the old region
// is of no use.
func hostGive(p *hostPair) {
	if !p.givesMemory() {
		return
	}
	near, far := p.channel()
	const size = 100_000
	r := p.region(p.connects, size)
	copy(r.Bytes(), body(0, size))
	for i := range uint64(5) {
		there := p.hands(r, near, far)
		require.Equal(p, body(2*i, size), there.Bytes())
		require.Nil(p, r.Bytes())
		require.NoError(p, r.Close())
		require.ErrorIs(p, sendRegion(p.Ctx(), near, r), bridge.ErrMoved)
		copy(there.Bytes(), body(2*i+1, size))
		done := p.givesInd(p.Ctx(), far, there.Bytes())
		p.takesInd(near, body(2*i+1, size))
		require.NoError(p, <-done)
		stale := there.Bytes()
		r = p.hands(there, far, near)
		require.Equal(p, body(2*i+1, size), r.Bytes())
		if p.connects != p.listens { // else it is here, under the same addresses
			require.ErrorIs(p, far.SendInd(p.Ctx(), stale), bridge.ErrMoved)
		}
		copy(r.Bytes(), body(2*i+2, size))
	}
	require.NoError(p, r.Close())
	p.closes(near, far)
}

// hostGiveRefused: what is not given stays, and works.
func hostGiveRefused(p *hostPair) {
	if !p.givesMemory() {
		return
	}
	near, far := p.channel()
	r := p.region(p.connects, 10_000)
	require.ErrorIs(p, sendRegion(p.Ctx(), near, nil), bridge.ErrInvalid)
	if p.connects != p.listens {
		require.ErrorIs(p, sendRegion(p.Ctx(), far, r), bridge.ErrInvalid)
	}
	own, err := p.connects.Register(make([]byte, 100))
	require.NoError(p, err)
	require.ErrorIs(p, sendRegion(p.Ctx(), near, own), bridge.ErrNotSupported)
	require.NoError(p, own.Close())
	require.ErrorIs(p, sendRegion(p.Ctx(), near, own), bridge.ErrClosed)
	loop, err := p.connects.Subscribe(p.Ctx(), abi.TargetLoopback)
	require.NoError(p, err)
	require.ErrorIs(p, sendRegion(p.Ctx(), loop, r), bridge.ErrNotSupported)
	_, err = receiveRegion(p.Ctx(), loop)
	require.ErrorIs(p, err, bridge.ErrNotSupported)
	require.NoError(p, loop.Close())

	copy(r.Bytes(), body(1, 10_000))
	ended, cancel := context.WithCancel(p.Ctx())
	cancel()
	require.ErrorIs(p, sendRegion(ended, near, r), bridge.ErrWithdrawn)
	soon, cancel := context.WithTimeout(p.Ctx(), time.Millisecond)
	require.ErrorIs(p, sendRegion(soon, near, r), bridge.ErrWithdrawn)
	cancel()
	done := p.givesInd(p.Ctx(), near, r.Bytes())
	_, err = far.Next(p.Ctx())
	require.NoError(p, err)
	require.ErrorIs(p, sendRegion(p.Ctx(), near, r), bridge.ErrBusy)
	p.takesInd(far, body(1, 10_000))
	require.NoError(p, <-done)
	into := Call("ReceiveInd", func() error { return near.ReceiveInd(p.Ctx(), r.Bytes()) })
	p.UntilBlocked(p.connects, 1)
	require.ErrorIs(p, sendRegion(p.Ctx(), near, r), bridge.ErrBusy)
	require.NoError(p, far.SendInd(p.Ctx(), body(1, 10_000)))
	require.NoError(p, p.Wait(into))

	p.closes(far)
	require.ErrorIs(p, sendRegion(p.Ctx(), near, r), bridge.ErrClosed)
	require.Equal(p, body(1, 10_000), r.Bytes())
	require.NoError(p, r.Close())
	p.closes(near)
}

// hostGiveAsBytes: a region that is received as a message stays, and neither a message nor an end is
// received as a region.
func hostGiveAsBytes(p *hostPair) {
	if !p.givesMemory() {
		return
	}
	near, far := p.channel()
	r := p.region(p.connects, 100)
	for _, there := range []bool{false, true} { // also when both know the memory
		if there {
			r = p.hands(p.hands(r, near, far), far, near)
		}
		done := make(chan error, 1)
		go func() { done <- sendRegion(p.Ctx(), near, r) }()
		_, err := far.(bridge.Mover).ReceiveChannel(p.Ctx())
		require.ErrorIs(p, err, bridge.ErrKindMismatch)
		parcel := make([]byte, abi.PayloadSize)
		_, err = far.Receive(p.Ctx(), parcel)
		require.NoError(p, err)
		require.ErrorIs(p, <-done, bridge.ErrKindMismatch)
		require.Len(p, r.Bytes(), 100)
		for _, at := range []int{-1, 16, 24, 32} { // it is late, and nothing of it is believed
			forged := append([]byte(nil), parcel...)
			if at >= 0 {
				binary.LittleEndian.PutUint64(forged[at:], rand.Uint64())
			}
			sent := p.gives(p.Ctx(), near, forged)
			_, err = receiveRegion(p.Ctx(), far)
			require.ErrorIs(p, err, bridge.ErrAborted)
			require.NoError(p, <-sent)
		}
		sent := p.gives(p.Ctx(), near, word(1))
		_, err = receiveRegion(p.Ctx(), far)
		require.ErrorIs(p, err, bridge.ErrKindMismatch)
		p.takes(far, word(1))
		require.NoError(p, <-sent)
	}
	require.NoError(p, r.Close())
	p.closes(near, far)
}

// hostGiveRaces: memory is given while contexts end at any time. It is at one host, with all its bytes.
func hostGiveRaces(p *hostPair) {
	if !p.givesMemory() {
		return
	}
	from, to := p.channel()
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	r, id := p.region(p.connects, 9000), uint64(0)
	copy(r.Bytes(), body(id, 9000))
	const rounds = 60
	for range rounds {
		there := p.handsOrNot(random, r, from, to)
		if there == nil {
			require.Equal(p, body(id, 9000), r.Bytes())
			continue
		}
		require.Nil(p, r.Bytes())
		require.Equal(p, body(id, 9000), there.Bytes())
		id++
		r, from, to = there, to, from
		copy(r.Bytes(), body(id, 9000))
	}
	p.Logf("%d of %d gifts were cancelled", rounds-int(id), rounds)
	require.NoError(p, r.Close())
	p.closes(from, to)
}

// handsOrNot has one host give a region and the other take it, with contexts that end at any time. It
// returns the region as the other has it, nil if it has not moved.
func (p *hostPair) handsOrNot(random *rand.Rand, r bridge.Region, from, to bridge.Channel) (there bridge.Region) {
	ctx, cancel := someContext(p.Ctx(), random)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- sendRegion(ctx, from, r) }()
	for {
		ctx, cancel := someContext(p.Ctx(), random)
		if ctx.Done() == p.Ctx().Done() { // the sender may give up
			ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
		}
		got, err := receiveRegion(ctx, to)
		cancel()
		if err == nil {
			require.NoError(p, <-result)
			return got
		}
		if !errors.Is(err, bridge.ErrAborted) {
			require.ErrorIs(p, err, bridge.ErrWithdrawn)
		}
		select {
		case err := <-result:
			require.Error(p, err)
			return nil
		default:
		}
	}
}

// hostGiveGoes: memory ends with the host that has it, and with no other.
func hostGiveGoes(p *hostPair) {
	if !p.givesMemory() || p.connects == p.listens {
		return
	}
	near, far := p.channel()
	r := p.region(p.connects, 9000)
	copy(r.Bytes(), body(1, 9000))
	done := make(chan error, 1)
	go func() { done <- sendRegion(p.Ctx(), near, r) }()
	_, err := far.Next(p.Ctx())
	require.NoError(p, err)
	require.NoError(p, p.connects.Reset(p.Ctx()))
	require.ErrorIs(p, <-done, bridge.ErrDeviceLost)
	require.Equal(p, body(1, 9000), r.Bytes())
	p.closes(far)

	near, far = p.channel() // the epoch after
	r = p.hands(r, near, far)
	require.NoError(p, p.connects.Reset(p.Ctx()))
	require.Equal(p, body(1, 9000), r.Bytes())
	p.closes(far)
	near, far = p.channel()
	r = p.hands(r, far, near)
	require.NoError(p, p.listens.Reset(p.Ctx()))
	require.Equal(p, body(1, 9000), r.Bytes())
	p.l = p.listen()
	p.closes(near)
	near, far = p.channel()
	sent := p.givesInd(p.Ctx(), near, r.Bytes())
	p.takesInd(far, body(1, 9000))
	require.NoError(p, <-sent)
	require.NoError(p, r.Close())
	p.closes(near, far)
}

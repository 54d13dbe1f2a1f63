package group

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTransports holds every transport to what Transport and link say.
func TestTransports(t *testing.T) {
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) {
			for what, test := range map[string]func(*testing.T, func(int) Transport){
				"order": linkOrder, "pieces": linkPieces, "given up": linkGivenUp, "several sources": linkSources,
				"mixed sizes": linkMixed, "end": linkEnd, "wait": linkWait, "rank taken": linkTaken, "room": linkRoom,
			} {
				t.Run(what, func(t *testing.T) { test(t, connect(t, 3)) })
			}
		})
	}
}

// links connects all members of a group of three.
func links(t *testing.T, connect func(int) Transport) []memberLink {
	t.Helper()
	all := make([]memberLink, 3)
	for rank := range all {
		var err error
		all[rank], err = connect(rank).connect(rank, len(all))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, all[rank].Close()) })
	}
	return all
}

// mustSend sends while another member receives, if that is what it takes.
func mustSend(t *testing.T, l memberLink, to int, h frameHeader, data []byte, meanwhile func()) {
	t.Helper()
	watchdog := time.Now().Add(patience)
	for {
		ok, err := l.TrySend(to, h, data)
		require.NoError(t, err)
		if ok {
			return
		}
		require.True(t, time.Now().Before(watchdog), "no room")
		meanwhile()
		l.Wait(1, time.Now().Add(time.Millisecond))
	}
}

func mustReceive(t *testing.T, l memberLink) frame {
	t.Helper()
	watchdog := time.Now().Add(patience)
	var f frame
	for !l.TryReceive(&f) {
		require.True(t, time.Now().Before(watchdog), "no frame")
		l.Wait(1, watchdog)
	}
	return f
}

func idle() {}

// linkOrder: frames of one member to another arrive in order, with their headers,
// and aligned for events.
func linkOrder(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	var got []frame
	take := func() {
		var f frame
		for all[1].TryReceive(&f) {
			keep := f
			keep.Data = bytes.Clone(f.Data)
			got = append(got, keep)
			all[1].Release(&f)
		}
	}
	const frames = 200
	for i := range frames {
		h := frameHeader{Step: uint64(i), Epoch: 1 << 30, Tag: uint16(3 * i), Op: opReduce, Flags: flagSync}
		mustSend(t, all[0], 1, h, bytes.Repeat([]byte{byte(i)}, 7*i), take)
	}
	for len(got) < frames {
		all[1].Wait(1, time.Now().Add(patience))
		take()
	}
	for i, f := range got {
		want := frameHeader{Step: uint64(i), Epoch: 1 << 30, Tag: uint16(3 * i), Op: opReduce, Flags: flagSync}
		require.Equal(t, want, f.frameHeader)
		require.Equal(t, 0, f.From)
		require.NoError(t, f.End)
		require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i)}, 7*i), f.Data))
	}
}

// linkMixed: small and large frames of one member arrive in the order in which they
// were sent, whatever room there was for each, and the end after all of them.
func linkMixed(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 64, 480, 481, 5 << 10, 100 << 10}
	data := make([]byte, 100<<10)
	next := uint64(0)
	take := func() bool {
		var f frame
		if !all[1].TryReceive(&f) {
			return false
		}
		require.NoError(t, f.End)
		require.Equal(t, next, f.Step)
		require.Len(t, f.Data, int(f.Tag)*16)
		next++
		all[1].Release(&f)
		return true
	}
	const frames = 400
	for i := range uint64(frames) {
		size := sizes[r.IntN(len(sizes))] &^ 15
		for ok := false; !ok; {
			var err error
			ok, err = all[0].TrySend(1, frameHeader{Step: i, Tag: uint16(size / 16)}, data[:size])
			require.NoError(t, err)
			if !ok && !take() { // its own frame has not arrived yet
				all[1].Wait(1, time.Now().Add(time.Millisecond))
			}
		}
		if r.IntN(4) == 0 {
			take()
		}
	}
	for watchdog := time.Now().Add(patience); next < frames; {
		if !take() {
			require.True(t, time.Now().Before(watchdog), "%d frames of %d", next, frames)
			all[1].Wait(1, watchdog)
		}
	}
}

// linkPieces: what is larger than the transport moves at once arrives whole.
func linkPieces(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	for _, size := range []int{0, 1, 4<<10 + 1, 68<<10 - 64, 68<<10 - 63, 1 << 20} {
		data := bytes.Repeat([]byte("0123456789abcdefg"), size/17+1)[:size]
		var f frame
		got := false
		mustSend(t, all[2], 0, frameHeader{Op: opExchange}, data, func() { got = got || all[0].TryReceive(&f) })
		if !got {
			f = mustReceive(t, all[0])
		}
		require.True(t, bytes.Equal(data, f.Data), "%d bytes", size)
		all[0].Release(&f)
	}
}

// linkGivenUp: a frame that found no room and was given up never arrives, the
// next one does.
func linkGivenUp(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	mustSend(t, all[0], 1, frameHeader{Step: 1}, []byte("first"), idle)
	f := mustReceive(t, all[1])
	all[1].Release(&f)
	big := make([]byte, 8<<20)
	ok, err := all[0].TrySend(1, frameHeader{Step: 2}, big)
	require.NoError(t, err)
	if ok { // a transport with room for all of it
		f = mustReceive(t, all[1])
		require.Len(t, f.Data, len(big))
		all[1].Release(&f)
	}
	next := false
	mustSend(t, all[0], 1, frameHeader{Step: 3}, []byte("next"), func() { next = next || all[1].TryReceive(&f) })
	if !next {
		f = mustReceive(t, all[1])
	}
	require.Equal(t, uint64(3), f.Step)
	require.Equal(t, "next", string(f.Data))
	all[1].Release(&f)
}

// linkSources: frames of several members arrive in any order, each from its own.
func linkSources(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	mustSend(t, all[0], 2, frameHeader{}, []byte{0}, idle)
	mustSend(t, all[1], 2, frameHeader{}, []byte{1}, idle)
	a := mustReceive(t, all[2])
	b := mustReceive(t, all[2]) // a is not released
	require.Equal(t, []byte{byte(a.From)}, a.Data)
	require.Equal(t, []byte{byte(b.From)}, b.Data)
	require.NotEqual(t, a.From, b.From)
	all[2].Release(&b)
	all[2].Release(&a)
}

// linkEnd: what a member sent before it left arrives, then its end.
func linkEnd(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	mustSend(t, all[0], 1, frameHeader{Step: 9}, []byte("last"), idle)
	require.NoError(t, all[0].Close())
	f := mustReceive(t, all[1])
	require.Equal(t, "last", string(f.Data))
	all[1].Release(&f)
	f = mustReceive(t, all[1])
	require.ErrorIs(t, f.End, ErrClosed)
	require.Equal(t, 0, f.From)
	all[1].Release(&f)
	watchdog := time.Now().Add(patience)
	for {
		_, err := all[1].TrySend(0, frameHeader{}, nil)
		require.True(t, time.Now().Before(watchdog), "it never learns")
		if err != nil {
			require.ErrorIs(t, err, ErrGone)
			return
		}
	}
}

// linkWait: the time and Wake each end a Wait.
func linkWait(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	all[0].Wait(1, time.Now().Add(time.Millisecond))
	all[0].Wake()
	all[0].Wait(1, time.Time{})
	go all[0].Wake()
	all[0].Wait(5, time.Time{})
	mustSend(t, all[1], 0, frameHeader{Op: opRevoke}, nil, idle)
	all[0].Wait(5, time.Time{}) // an urgent frame is one of five
	f := mustReceive(t, all[0])
	all[0].Release(&f)
}

func linkTaken(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	require.Len(t, all, 3)
	_, err := connect(1).connect(1, 3)
	require.ErrorIs(t, err, ErrRankTaken)
}

// linkRoom: a member that waits for room continues once there is some.
func linkRoom(t *testing.T, connect func(int) Transport) {
	all := links(t, connect)
	const frames = 50
	received := make(chan int)
	go func() {
		n := 0
		for range frames {
			f := mustReceive(t, all[1])
			n += len(f.Data)
			all[1].Release(&f)
		}
		received <- n
	}()
	data := make([]byte, 60<<10)
	for i := range frames {
		for ok := false; !ok; {
			var err error
			if ok, err = all[0].TrySend(1, frameHeader{Step: uint64(i)}, data); !ok {
				require.NoError(t, err)
				all[0].Wait(1, time.Now().Add(patience))
			}
		}
	}
	require.Equal(t, frames*len(data), <-received)
}

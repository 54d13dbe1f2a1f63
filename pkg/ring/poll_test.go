//go:build linux

package ring

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTryWaitsForNobody: what would wait says so, and continues where it stopped.
func TestTryWaitsForNobody(t *testing.T) {
	ctx := background(t)
	r := create(t, Config{Packets: 3, PacketSize: os.Getpagesize()})
	w, err := r.Writer(ctx)
	require.NoError(t, err)
	ok, err := w.TryCommit(1)
	require.False(t, ok, "nobody reads")
	require.NoError(t, err)
	_, err = w.TryCommit(r.Payload() + 1)
	require.ErrorIs(t, err, ErrTooLarge)
	d, err := r.Reader(ctx)
	require.NoError(t, err)
	_, ok, err = d.TryPeek()
	require.False(t, ok)
	require.NoError(t, err)
	for n := range byte(2) {
		w.Reserve()[0] = n
		ok, err = w.TryCommit(1)
		require.True(t, ok)
		require.NoError(t, err)
	}
	w.Reserve()[0] = 2
	ok, _ = w.TryCommit(1)
	require.False(t, ok, "a ring of three holds two")
	require.NoError(t, w.Close())
	for n := range byte(2) {
		p, ok, err := d.TryPeek()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, []byte{n}, p)
		d.Release()
	}
	_, ok, err = d.TryPeek()
	require.False(t, ok)
	require.Equal(t, io.EOF, err)
	require.NoError(t, d.Close())
	_, _, err = d.TryPeek()
	require.ErrorIs(t, err, ErrClosed)
	_, err = w.TryCommit(1)
	require.ErrorIs(t, err, ErrClosed)
}

// TestPoll: a packet in any of several rings, room, an end, Wake and the time each
// end a Wait, and a side that is off ends none.
func TestPoll(t *testing.T) {
	for _, wait := range []Wait{Adaptive, Yield, Park} {
		ctx := background(t)
		p, err := NewPoll(wait)
		require.NoError(t, err)
		var writers [3]*Writer
		var readers [3]*Reader
		var watches [3]*Watch
		for i := range writers {
			writers[i], readers[i] = pair(t, create(t, Config{Packets: 3, PacketSize: os.Getpagesize()}))
			watches[i], err = p.Add(readers[i])
			require.NoError(t, err)
		}
		for round := range 30 {
			go func() { _ = writers[round%3].Write(ctx, []byte{byte(round)}) }()
			for ok := false; !ok; {
				p.Wait(time.Time{})
				var got []byte
				if got, ok, err = readers[round%3].TryPeek(); ok {
					require.Equal(t, []byte{byte(round)}, got)
				}
				require.NoError(t, err)
			}
			readers[round%3].Release()
		}

		go p.Wake()
		p.Wait(time.Time{})
		go writers[1].Wake()
		p.Wait(time.Time{})
		require.False(t, p.Ready())
		watches[0].On = false
		require.NoError(t, writers[0].Write(ctx, nil))
		p.Wait(time.Now().Add(time.Millisecond)) // ends by its time alone
		watches[0].On = true
		require.True(t, p.Ready())
		p.Wait(time.Time{})

		full, err := p.Add(writers[1])
		require.NoError(t, err)
		for ok := true; ok; {
			ok, err = writers[1].TryCommit(0)
			require.NoError(t, err)
		}
		for _, w := range watches {
			w.On = false
		}
		go func() {
			for range 2 {
				_, _ = readers[1].Peek(ctx)
				readers[1].Release()
			}
		}()
		for ok := false; !ok; {
			p.Wait(time.Time{})
			ok, err = writers[1].TryCommit(0)
			require.NoError(t, err)
		}
		full.On, watches[2].On = false, true
		go func() { _ = writers[2].Close() }()
		for err == nil {
			p.Wait(time.Time{})
			_, _, err = readers[2].TryPeek()
		}
		require.Equal(t, io.EOF, err)
		require.NoError(t, p.Close())
	}
}

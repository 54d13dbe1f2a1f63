//go:build linux

package ring

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// steps drives both heads one move at a time and draws the ring as the report
// does: b blank, d data, g and r the heads, ! after one that is blocked.
type steps struct {
	t        require.TestingT
	w        *Writer
	d        *Reader
	sent     uint64 // packets whose Commit succeeded
	got      uint64
	writing  bool // the writer has begun: its head shows
	reading  bool // the reader has read
	gBlocked bool
	rBlocked bool
}

// g writes the packet under the head, and moves on if the reader lets it.
func (s *steps) g() {
	s.writing = true
	binary.LittleEndian.PutUint64(s.w.Reserve(), s.sent)
	err := s.w.Commit(over, 8)
	s.gBlocked = err != nil
	if err == nil {
		s.sent++
		s.rBlocked = false
		return
	}
	require.ErrorIs(s.t, err, context.Canceled)
}

// r moves to the next packet and reads it.
func (s *steps) r() {
	p, err := s.d.Peek(over)
	s.rBlocked = err != nil
	if err != nil {
		require.ErrorIs(s.t, err, context.Canceled)
		return
	}
	require.Equal(s.t, s.got, binary.LittleEndian.Uint64(p))
	s.got++
	s.reading = true
	s.gBlocked = false
	s.d.Release()
}

func (s *steps) draw() string {
	size := s.d.ring.area.packets
	cells := strings.Split(strings.Repeat("b", int(size)), "")
	for n := s.got; n < s.sent; n++ {
		cells[n%size] = "d"
	}
	if s.writing {
		cells[s.sent%size] = "g"
	}
	if s.reading {
		cells[(s.got-1)%size] = "r"
	}
	if s.gBlocked {
		cells[s.sent%size] = "g!"
	}
	if s.rBlocked {
		cells[(s.got-1)%size] = "r!"
	}
	return strings.Join(cells, "")
}

// play makes the moves of a word: after each the ring is drawn. A move that is
// blocked is made again as often as the word says.
func (s *steps) play(moves string) (trace []string) {
	for _, m := range moves {
		if m == 'g' {
			s.g()
		} else {
			s.r()
		}
		trace = append(trace, s.draw())
	}
	return trace
}

// TestTraces are the head traces of the report, for sizes 2, 3 and 5.
func TestTraces(t *testing.T) {
	for _, c := range []struct {
		name, moves string
		size        int
		want        string
	}{
		// A commit moves the head on at once if it may: "gb" is "dg" here.
		{"size 2 deadlocks", "ggrrg", 2, "dg dg! rg r!g r!g!"},
		{"size 3 alternates", "gggrrrggr", 3, "dgb ddg ddg! rdg brg br!g grd g!rd gbr"},
		{"size 5", "gggr", 5, "dgbbb ddgbb dddgb rddgb"},
		{"size 5, fast generator", "gggggrgrgg", 5, "dgbbb ddgbb dddgb ddddg ddddg! rdddg rdddg! brddg grddd g!rddd"},
		{"size 5, fast receiver", "grrgr", 5, "dgbbb rgbbb r!gbbb rdgbb brgbb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := create(t, Config{Packets: 7})
			w, d := pair(t, r)
			r.area.packets = uint64(c.size) // sizes below 3 are refused by Create
			s := &steps{t: t, w: w, d: d}
			require.Equal(t, strings.Fields(c.want), s.play(c.moves))
		})
	}
}

// TestTwoPacketsBlockForEver: why MinPackets is 3.
func TestTwoPacketsBlockForEver(t *testing.T) {
	_, err := Create(newName(), Config{Packets: 2})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "at least 3")
}

// TestHeadsNeverTouch: any moves in any order, sizes 2 to 7: order and contents are exact. The
// heads are never on one packet once both have started, and the ring holds at most size-1 packets.
func TestHeadsNeverTouch(t *testing.T) {
	r := create(t, Config{Packets: 7})
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 7).Draw(t, "size")
		ctx := context.Background()
		d, err := r.Reader(ctx)
		require.NoError(t, err)
		w, err := r.Writer(ctx)
		require.NoError(t, err)
		defer func() {
			require.NoError(t, errors.Join(w.Close(), d.Close()))
		}()
		defer func(n uint64) { r.area.packets = n }(r.area.packets)
		r.area.packets = uint64(size)
		s := &steps{t: t, w: w, d: d}
		for _, g := range rapid.SliceOfN(rapid.Bool(), 1, 200).Draw(t, "moves") {
			if g {
				s.g()
			} else {
				s.r()
			}
			require.LessOrEqual(t, s.sent-s.got, uint64(size-1))
			if s.writing && s.reading {
				require.NotEqual(t, s.sent%uint64(size), (s.got-1)%uint64(size), "the heads touch")
			}
		}
	})
}

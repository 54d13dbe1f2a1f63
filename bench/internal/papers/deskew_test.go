package papers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeskew is the report's example: T0 to T3.
func TestDeskew(t *testing.T) {
	var d Deskew
	none := func() {
		_, ok := d.Take()
		require.False(t, ok)
	}
	d.Mark(0) // T0
	d.Mark(3)
	none()
	d.Mark(1) // T1
	d.Mark(2)
	none()
	d.Put(0, 0x10) // T2
	d.Put(3, 0x13)
	none()
	d.Put(0, 0x20) // T3: a whole word is read
	d.Put(3, 0x23)
	d.Put(1, 0x11)
	d.Put(2, 0x12)
	word, ok := d.Take()
	require.True(t, ok)
	require.Equal(t, [LinkLanes]uint32{0x10, 0x11, 0x12, 0x13}, word)
	none()
}

// TestDeskewMark: symbols before the first mark of a lane are no words, and a mark mends lanes that
// were too far apart.
func TestDeskewMark(t *testing.T) {
	var d Deskew
	for i := range DeskewDepth + 1 {
		d.Put(0, 1)
		if i == 0 {
			d.Mark(0)
		}
	}
	require.Zero(t, d.Overflows)
	d.Put(0, 1)
	require.Equal(t, 1, d.Overflows)
	for lane := range LinkLanes {
		d.Mark(lane)
		d.Put(lane, uint32(lane))
	}
	word, ok := d.Take()
	require.True(t, ok)
	require.Equal(t, [LinkLanes]uint32{0, 1, 2, 3}, word)
}

// TestSkew: any skew below the depth is removed, and each more is noticed.
func TestSkew(t *testing.T) {
	for symbols := range DeskewDepth + 2 {
		want := Skewed{Symbols: symbols, Words: 100, Sent: 100}
		if symbols >= DeskewDepth {
			want.Words, want.Overflows = 0, LinkLanes
		}
		require.Equal(t, want, SimulateSkew(symbols))
	}
}

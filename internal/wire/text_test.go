package wire

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestNamesAreTheHeaders: each name is that of the header's enum, without its prefix.
func TestNamesAreTheHeaders(t *testing.T) {
	c, _ := readBoth(t)
	for _, list := range []struct {
		prefix string
		names  []string
	}{
		{"NFC_TYPE_", typeText[:]}, {"NFC_STATE_", stateText[:]}, {"NFC_", statusNamesText()},
	} {
		for i, name := range list.names {
			e, ok := c.Enums[list.prefix+name]
			require.True(t, ok, list.prefix+name)
			require.EqualValues(t, i, e.Value, list.prefix+name)
		}
	}
	require.Equal(t, "IND_BEGIN 20 MOVING 6 ESTALLED 22",
		fmt.Sprint(TypeIndBegin, " ", TypeCount, " ", StateMoving, " ", StateCount, " ", abi.ErrStalled, " ", abi.StatusCount))
}

// statusNamesText returns the name of each status.
func statusNamesText() (list []string) {
	for s := range abi.StatusCount {
		list = append(list, s.String())
	}
	return list
}

// TestSlotsAsText: the golden vectors of every type are good, and each on one line.
func TestSlotsAsText(t *testing.T) {
	files, err := filepath.Glob("../../bridge/abi/testdata/*.hex")
	require.NoError(t, err)
	seen := make(map[Type]string)
	for _, f := range files {
		v, err := readVector(f)
		require.NoError(t, err)
		s := *(*Slot)(unsafe.Pointer(&v.bytes))
		text := s.String()
		require.NotContains(t, text, "!", f)
		require.NotContains(t, text, "\n", f)
		require.Less(t, len(text), 400, f)
		seen[Header(s.Header).Type()] = text
	}
	require.Len(t, slices.Collect(maps.Keys(seen)), int(TypeCount)-1, "a type without a vector")
}

// TestSlotText: the text of good slots, and how it marks what is bad.
func TestSlotText(t *testing.T) {
	note := Slot{Header: uint64(MakeHeader(TypeFin, abi.PayloadSize, 1, 7, 5)), Payload: [7]uint64{65543, 1}}
	list := Slot{Header: uint64(MakeHeader(TypeIndList, 2|ListD2H, 1, 7, 5)),
		Payload: [7]uint64{uint64(MakeEntry(0x1000, 4096)), uint64(MakeEntry(0x2f00, 4096)), 3, 0, 0, 0, MakeTail(9, 2)}}
	runs := Slot{Header: uint64(MakeHeader(TypeIndList, 2|ListRuns, 1, 7, 5)),
		Payload: [7]uint64{uint64(MakeRun(0x1010, 3)), uint64(MakeRun(1<<48-4096, 2)), 0, 0, 0, 0, MakeTail(0, 0)}}
	for _, c := range []struct {
		slot Slot
		want string
	}{
		{runs, "IND_LIST channel=5 sequence=7 epoch=1 phase=0 direction=h2d count=2 list=0 outstanding=0 entries=[0x1010..0x4000][0xfffffffff000..0x1000000001000]!"},
		{note, "FIN channel=5 sequence=7 epoch=1 phase=0 length=56 transaction=65543 direction=d2h status=OK"},
		{Slot{Header: note.Header, Payload: [7]uint64{8, 22<<32 | 2, 0, 1}},
			"FIN channel=5 sequence=7 epoch=1 phase=0 length=56 transaction=8! direction=2! status=22! reserved=[0 1 0 0 0]!"},
		{list, "IND_LIST channel=5 sequence=7 epoch=1 phase=0 direction=d2h count=2 list=2 outstanding=9 entries=[0x1000+4096][0x2f00+4096]![0x3]!"},
		{Slot{Header: uint64(MakeHeader(77, 200, 0, 9, 0))}, "77! channel=0 sequence=9 epoch=0 phase=0 length=200! payload=" + strings.Repeat("00", 56)},
	} {
		require.Equal(t, c.want, c.slot.String())
	}
}

// FuzzSlotText: any 64 bytes have a line, and the bytes of an honest note have one without marks.
func FuzzSlotText(f *testing.F) {
	f.Add(make([]byte, SlotSize))
	for t := range TypeCount {
		s := Slot{Header: uint64(MakeHeader(t, abi.PayloadSize, 1, 2, 3)), Payload: [7]uint64{2}}
		f.Add((*[SlotSize]byte)(unsafe.Pointer(&s))[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Slot
		copy((*[SlotSize]byte)(unsafe.Pointer(&s))[:], b)
		text := s.String()
		require.True(t, strings.HasPrefix(text, Header(s.Header).Type().String()), text)
		require.NotContains(t, text, "\n")
		require.NotContains(t, text, "%!")
		for i := range 7 { // what is reserved shows
			changed := s
			changed.Payload[i] ^= 1 << 40
			if known := Header(s.Header).Type(); known != TypeDirect && known != TypeCall && known != TypeAnswer && known != TypeNone && known < TypeCount {
				require.NotEqual(t, text, changed.String(), "word %d", i)
			}
		}
	})
}

// TestWhy: a reason is as long as there is room for, and what is no text is none.
func TestWhy(t *testing.T) {
	for why, want := range map[string]string{
		"":                      "",
		"needs chanel_read":     "needs chanel_read",
		strings.Repeat("x", 50): strings.Repeat("x", WhySize-1),
		"two\nlines":            "",
		"\xff":                  "",
	} {
		c := Control{B: 1, C: 2, Name: [abi.NameSize]byte{3}}
		c.SetWhy(why)
		require.Equal(t, want, c.Why())
	}
	full := Control{B: 0x6161616161616161, C: 0x6161616161616161, Name: [abi.NameSize]byte([]byte(strings.Repeat("a", abi.NameSize)))}
	require.Equal(t, strings.Repeat("a", WhySize), full.Why(), "a device that ends it with no zero")
}

package slottrace

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// lines is a trace of three epochs of two devices, as tracefs of Linux 6.1 shows the kernel module.
func lines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/dev.trace")
	require.NoError(t, err)
	return strings.SplitAfter(string(text), "\n")
}

func verify(list []string) (Summary, error) {
	return Verify(strings.NewReader(strings.Join(list, "")))
}

// TestTrace: what the module put and took is a path of the tables. Its lists have as many bytes as its
// pages allow, each another number.
func TestTrace(t *testing.T) {
	sum, err := verify(lines(t))
	require.NoError(t, err)
	require.Equal(t, Summary{Slots: 124, Epochs: 3}, sum)
	require.True(t, sum.Complete())
}

// TestSeeded: a slot of a type that neither side may put is refused at its line, wherever it is. So is
// a message that is put twice. Where a list is missing, the next record is refused.
func TestSeeded(t *testing.T) {
	list := lines(t)
	refused := func(text []string, line int) {
		t.Helper()
		_, err := verify(text)
		var illegal *IllegalError
		require.ErrorAs(t, err, &illegal, "line %d", line)
		require.Equal(t, line, illegal.Line, "%v", illegal)
	}
	for i, line := range list {
		before, words, ok := strings.Cut(line, " slot={")
		if !ok {
			continue
		}
		var old uint64
		_, err := fmt.Sscanf(words, "0x%x,", &old)
		require.NoError(t, err)
		h := wire.Header(old)
		text := slices.Clone(list)
		h = wire.MakeHeader(wire.TypeHello, abi.PayloadSize, h.Epoch(), h.Sequence(), h.Channel())
		text[i] = fmt.Sprintf("%s slot={0x%x,%s", before, uint64(h), words[strings.Index(words, ",")+1:])
		refused(text, i+1)
		if strings.Contains(before, "slot_out") && strings.Contains(before, "type=DIRECT") {
			refused(slices.Insert(slices.Clone(list), i+1, line), i+2)
		}
	}
	lists := indexes(list, "slot_out: device=0", "type=IND_LIST")
	last := lists[len(lists)-1]
	done := indexes(list, "slot_in: device=0", "type=DONE")
	refused(slices.Delete(slices.Clone(list), last, last+1), done[len(done)-1])
}

// indexes lists the lines with two texts.
func indexes(list []string, a, b string) (at []int) {
	for i, line := range list {
		if strings.Contains(line, a) && strings.Contains(line, b) {
			at = append(at, i)
		}
	}
	return at
}

// TestGaps: where events are missing, the rest of an epoch is passed over and counted.
func TestGaps(t *testing.T) {
	list := lines(t)
	at := indexes(list, "slot_in: device=0", "type=DIRECT")[3]
	for _, c := range []struct {
		name string
		text []string
		lost uint64
	}{
		{"a reader of trace_pipe was too slow", slices.Insert(slices.Clone(list), at, "CPU:1 [LOST 12 EVENTS]\n"), 12},
		{"a buffer begins here", slices.Insert(slices.Clone(list), at, "##### CPU 1 buffer started ####\n"), 0},
		{"the buffer was overwritten", slices.Concat([]string{"# entries-in-buffer/entries-written: 129/140   #P:2\n"}, list[3:4], list[5:]), 11},
		{"the trace begins in an epoch", list[5:], 0},
	} {
		sum, err := verify(c.text)
		require.NoError(t, err, c.name)
		require.Equal(t, c.lost, sum.Lost, c.name)
		require.False(t, sum.Complete(), c.name)
		require.Positive(t, sum.Skipped, c.name)
		require.Equal(t, 124, sum.Slots+sum.Skipped, c.name)
	}
}

// endless is a text without lines.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{'x'}, len(p))), nil }

// TestNoTrace: what is no trace is refused in a line.
func TestNoTrace(t *testing.T) {
	begin := "x-1 [000] ..... 1.000001: nfcomms_epoch: device=0 epoch=1 down=0"
	for text, want := range map[string]string{
		"":                              "it has none of",
		"# tracer: nop\npackage spec\n": "it has none of",
		begin + "\n":                    "line 1: nfcomms_epoch without channels: of another version",
		begin + " channels=64 mailboxes=2 islands=1 window=9\n":                                                          "nfcomms_epoch without limit",
		begin + " channels=64 mailboxes=3 islands=2 window=9 limit=9\n":                                                  "3 mailboxes and 2 islands",
		begin + " channels=64 mailboxes=99999999999 islands=2 window=9 limit=9\n":                                        "without mailboxes",
		"x-1 [000] ..... 1: nfcomms_slot_in: device=0 mailbox=0 channel=1 type=ACK payload0=0x1\n":                       "a slot without device, mailbox and slot",
		"x-1 [000] ..... 1: nfcomms_slot_in: device=0 mailbox=0 slot={0x1,0x2}\n":                                        "a slot of other than 8 words",
		"x-1 [000] ..... 1: nfcomms_slot_in: device=0 mailbox=0 slot={0x1,0x2,0x3,0x4,0x5,0x6,0x7,0x8,0x9}\n":            "a slot of other than 8 words",
		"x-1 [000] ..... 1: nfcomms_slot_in: device=0 mailbox=0 slot={0x1,0x2,0x3,0x4,0x5,0x6,0x7,0x8ffffffffffff}\nCPU": "",
		"# entries-in-buffer/entries-written: 9/5   #P:2\n":                                                              "entries 9 of 5",
	} {
		_, err := verify([]string{text})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
	_, err := Verify(endless{})
	require.ErrorContains(t, err, "line 1 has more than 4096 bytes")
}

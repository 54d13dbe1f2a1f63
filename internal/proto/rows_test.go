package proto_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestEachHostRowMatters: a host that lacks a transition, or has another in its place, fails a
// conversation or leaves the walk that holds the kernel module to the table.
func TestEachHostRowMatters(t *testing.T) {
	list := conversations(t)
	w := talk.NewWalk(proto.Default(), 1)
	var walk []talk.Line
	for range 50_000 {
		walk = append(walk, w.Next())
	}
	changes := map[string]func(r *proto.Row){
		"state":      func(r *proto.Row) { r.Next = (r.Next + 1) % (proto.StateCalled + 1) },
		"event":      func(r *proto.Row) { r.Event = (r.Event + 1) % (proto.EventUnanswered + 1) },
		"mark set":   func(r *proto.Row) { r.Set = 0 },
		"mark unset": func(r *proto.Row) { r.Clear = 0 },
	}
	by := map[string]int{}
	for i, r := range proto.Rows() {
		if r.Event != proto.EventFault { // as an input without a row is
			by[hostMissed(t, list, walk, slices.Delete(proto.Rows(), i, i+1), fmt.Sprintf("without: %v", r))]++
		}
		for what, change := range changes {
			rows := proto.Rows()
			if change(&rows[i]); rows[i] != r && !hostEqual(what, r) {
				by[hostMissed(t, list, walk, rows, fmt.Sprintf("with another %s: %v", what, r))]++
			}
		}
	}
	reportFound(t, "host", by)
}

// reportFound tells by what the changes of a table were found, in the same words for each table.
func reportFound(t *testing.T, table string, by map[string]int) {
	t.Helper()
	var ways []string
	sum := 0
	for _, way := range slices.Sorted(maps.Keys(by)) {
		ways = append(ways, fmt.Sprintf("%s %d", way, by[way]))
		sum += by[way]
	}
	t.Logf("%s: %d changes, found %s", table, sum, strings.Join(ways, ", "))
}

// hostEqual reports whether a change makes no difference: nothing follows a fault, an act of the host
// has no meaning for it, and what forgets a mark on the way to idle is not looked at on that way.
func hostEqual(what string, r proto.Row) bool {
	ends := r.Next == proto.StateAnswering || r.Next == proto.StateMoving || r.Next == proto.StateGiven
	return what == "mark unset" && ends || r.Event == proto.EventFault && what != "event" || what == "event" && !r.Input.ByDevice()
}

// hostMissed returns by what a host of these rows is found out.
func hostMissed(t *testing.T, list []*talk.Conversation, walk []talk.Line, rows []proto.Row, change string) string {
	t.Helper()
	table, err := proto.NewTable(rows)
	require.NoError(t, err)
	m := &talk.Model{Table: table}
	for _, c := range list {
		if c.DeviceOnly == "" && talk.PlayHost(c, m) != nil {
			return "by conversations"
		}
	}
	for _, l := range walk {
		if !l.Agrees(hostAnswer(t, m, l.Text)) {
			return "by the walk"
		}
	}
	t.Errorf("nothing notices a host %s", change)
	return "by nothing"
}

// hostAnswer has a host do a line of a walk, and returns its answer as that of a program.
func hostAnswer(t *testing.T, m *talk.Model, text string) string {
	t.Helper()
	words := strings.Fields(text)
	var state fmt.Stringer
	var err error
	switch words[0] {
	case "open":
		var o talk.Open
		_, err = fmt.Sscanf(text, "open %d %d %d %d %d %d", &o.Next[0], &o.Next[1], &o.Generation, &o.Window, &o.Limit, &o.Runs)
		require.NoError(t, err)
		require.NoError(t, m.Open(&o))
		return "ok"
	case "put":
		state, err = m.Put(slotOf(t, words[1:]))
	case "take":
		event, after, _ := m.Take(slotOf(t, words[1:]))
		return fmt.Sprintf("%v %v", event, after)
	default:
		d := abi.H2D
		if words[1] == abi.D2H.String() {
			d = abi.D2H
		}
		state, err = m.Do(words[0], d)
	}
	if err != nil {
		return "no: " + err.Error()
	}
	return state.String()
}

// slotOf reads a slot's words.
func slotOf(t *testing.T, words []string) *wire.Slot {
	t.Helper()
	var s wire.Slot
	for i, w := range words {
		n, err := strconv.ParseUint(w, 16, 64)
		require.NoError(t, err)
		if i == 0 {
			s.Header = n
		} else {
			s.Payload[i-1] = n
		}
	}
	return &s
}

package proto_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// betweenHosts are the parties that play the device between two hosts.
var betweenHosts = []party[talk.Hosts]{
	{"proto", func(t *testing.T) talk.Hosts { return hostsModel(t, proto.ConnectionRows(), proto.EndRows()) }},
}

func hostsModel(t *testing.T, rows []proto.ConnectionRow, ends []proto.EndRow) *talk.HostsModel {
	return &talk.HostsModel{Table: connectionTable(t, rows), Ends: ends, Used: map[int]bool{}, UsedEnds: map[int]bool{}}
}

func connectionTable(t *testing.T, rows []proto.ConnectionRow) *proto.ConnectionTable {
	t.Helper()
	table, err := proto.NewConnectionTable(rows)
	require.NoError(t, err)
	return table
}

func hostTalks(t *testing.T) []*talk.HostsTalk {
	t.Helper()
	list, err := talk.LoadHosts(os.DirFS("testdata/hosts"))
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// TestTalkHosts replays every conversation of two hosts to every party.
func TestTalkHosts(t *testing.T) {
	parties := made(t, betweenHosts)
	for _, c := range hostTalks(t) {
		t.Run(c.Name, func(t *testing.T) {
			for i, p := range betweenHosts {
				require.NoError(t, talk.PlayHosts(c, parties[i]), p.name)
			}
		})
	}
}

// TestTalkCoversTheConnection requires that a conversation follows each transition of an end.
func TestTalkCoversTheConnection(t *testing.T) {
	m := hostsModel(t, proto.ConnectionRows(), proto.EndRows())
	for _, c := range hostTalks(t) {
		require.NoError(t, talk.PlayHosts(c, m))
	}
	for i, r := range m.Table.Rows() {
		if !m.Used[i] {
			t.Errorf("no conversation follows: %v", r)
		}
	}
	for i, r := range m.Ends {
		if !m.UsedEnds[i] {
			t.Errorf("no conversation follows: %v", r)
		}
	}
}

// TestConnectionTableIsUnambiguous: no two transitions fit one input.
func TestConnectionTableIsUnambiguous(t *testing.T) {
	rows := proto.ConnectionRows()
	_, err := proto.NewConnectionTable(append(rows, rows[3]))
	require.ErrorContains(t, err, "two transitions: "+rows[3].String())
	ends := proto.EndRows()
	require.NoError(t, proto.CheckEnds(ends))
	require.ErrorContains(t, proto.CheckEnds(append(ends, ends[3])), "two transitions: "+ends[3].String())
}

// TestEachConnectionRowMatters: a device between hosts that lacks a transition, or has another in its
// place, fails a conversation or leaves the walk that holds the firmware to the table.
func TestEachConnectionRowMatters(t *testing.T) {
	list := hostTalks(t)
	changes := map[string]func(r *proto.ConnectionRow){
		"slot":       func(r *proto.ConnectionRow) { r.Put = (r.Put + 1) % (proto.PutAsk + 1) },
		"state":      func(r *proto.ConnectionRow) { r.Next = (r.Next + 1) % proto.DeviceMoving },
		"news":       func(r *proto.ConnectionRow) { r.Notify ^= proto.NewsGone },
		"no news":    func(r *proto.ConnectionRow) { r.Notify = 0 },
		"mark set":   func(r *proto.ConnectionRow) { r.Set = 0 },
		"mark unset": func(r *proto.ConnectionRow) { r.Clear = 0 },
		"status": func(r *proto.ConnectionRow) {
			if r.Status != abi.OK {
				r.Status = abi.ErrReset
			}
		},
	}
	by := map[string]int{}
	for i, r := range proto.ConnectionRows() {
		by[hostsMissed(t, list, slices.Delete(proto.ConnectionRows(), i, i+1), proto.EndRows(), fmt.Sprintf("without: %v", r))]++
		for what, change := range changes {
			rows := proto.ConnectionRows()
			if change(&rows[i]); rows[i] != r && !endEqual(what, r) {
				by[hostsMissed(t, list, rows, proto.EndRows(), fmt.Sprintf("with another %s: %v", what, r))]++
			}
		}
	}
	wholes := map[string]func(r *proto.EndRow){
		"state": func(r *proto.EndRow) { r.Next = (r.Next + 1) % (proto.EndAlone + 1) },
		"slot":  func(r *proto.EndRow) { r.Put ^= proto.PutOver },
		"news":  func(r *proto.EndRow) { r.Notify ^= proto.NewsGone },
	}
	for i, r := range proto.EndRows() {
		by[hostsMissed(t, list, proto.ConnectionRows(), slices.Delete(proto.EndRows(), i, i+1), fmt.Sprintf("without: %v", r))]++
		for what, change := range wholes {
			rows := proto.EndRows()
			if change(&rows[i]); !wholeEqual(what, r) {
				by[hostsMissed(t, list, proto.ConnectionRows(), rows, fmt.Sprintf("with another %s: %v", what, r))]++
			}
		}
	}
	reportFound(t, "ends between hosts", by)
}

// endEqual reports whether a change makes no difference: nothing follows once the other end is gone, an
// end whose host detaches is over, and the other end stops then by itself; an end that gives up notifies
// the other as it ends itself, and what a close crossed is answered next.
func endEqual(what string, r proto.ConnectionRow) bool {
	over := r.Input == proto.OtherGone && (what == "news" || what == "mark unset" || what == "no news" && r.State == proto.DeviceMoving)
	left := r.Input == proto.HostGone && what != "status"
	crossed := r.Input == proto.OtherClosed && what == "state" && r.Direction == abi.H2D && r.State == proto.DeviceMessage
	return over || left || crossed || r.Notify == proto.NewsGiveUp && what != "no news"
}

// wholeEqual reports the same of an end as a whole: nothing follows at an end that is over, nothing is
// put to a host that detached, and an end that is alone has no other to notify.
func wholeEqual(what string, r proto.EndRow) bool {
	return what == "state" && r.Next == proto.EndNone || what == "slot" && r.Input == proto.EndHostDetaches ||
		what == "news" && r.State == proto.EndAlone
}

// hostsMissed returns by what a device of these rows is found out.
func hostsMissed(t *testing.T, list []*talk.HostsTalk, rows []proto.ConnectionRow, ends []proto.EndRow, change string) string {
	t.Helper()
	table, err := proto.NewConnectionTable(rows)
	if err != nil {
		return "by the table itself"
	}
	m := &talk.HostsModel{Table: table, Ends: ends}
	w := talk.NewHostsWalk(connectionTable(t, proto.ConnectionRows()), proto.EndRows(), m, 1)
	return foundOut(t, change, list, func(c *talk.HostsTalk) error { return talk.PlayHosts(c, m) }, 50_000, w.Step)
}

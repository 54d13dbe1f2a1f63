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

// guests are the parties that play the devices of a process that connects.
var guests = []party[talk.Guests]{
	{"proto", func(t *testing.T) talk.Guests { return guestsModel(t, proto.DialRows()) }},
}

func guestsModel(t *testing.T, rows []proto.DialRow) *talk.GuestsModel {
	t.Helper()
	dial, err := proto.NewDial(rows)
	require.NoError(t, err)
	return &talk.GuestsModel{Dial: dial, Used: map[int]bool{}}
}

func guestTalks(t *testing.T) []*talk.GuestsTalk { return loadGuests(t, "testdata/guests/dial.talk") }

// loadGuests reads conversations of processes that connect, or of ends that move.
func loadGuests(t *testing.T, path string) []*talk.GuestsTalk {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	list, err := talk.LoadGuests(f)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// replayGuests replays every conversation to every party.
func replayGuests[P any](t *testing.T, list []*talk.GuestsTalk, parties []party[P], play func(c *talk.GuestsTalk, p P) error) {
	t.Helper()
	all := made(t, parties)
	for _, c := range list {
		t.Run(c.Name, func(t *testing.T) {
			for i, p := range parties {
				require.NoError(t, play(c, all[i]), p.name)
			}
		})
	}
}

// TestTalkGuests replays every conversation of a process that connects to every party.
func TestTalkGuests(t *testing.T) {
	replayGuests(t, guestTalks(t), guests, talk.PlayGuests)
}

// TestTalkCoversTheDials requires that a conversation follows each transition.
func TestTalkCoversTheDials(t *testing.T) {
	m := guestsModel(t, proto.DialRows())
	for _, c := range guestTalks(t) {
		require.NoError(t, talk.PlayGuests(c, m))
	}
	for i, r := range m.Dial.Rows() {
		if !m.Used[i] {
			t.Errorf("no conversation follows: %v", r)
		}
	}
}

// TestEachDialRowMatters: devices that lack a transition, or have another in its place, fail a
// conversation or leave the walk that holds the firmware to the rows.
func TestEachDialRowMatters(t *testing.T) {
	list := guestTalks(t)
	changes := map[string]func(r *proto.DialRow){
		"state": func(r *proto.DialRow) { r.Next = (r.Next + 1) % (proto.DialAlone + 1) },
		"effect": func(r *proto.DialRow) {
			if r.Does == proto.DialNothing {
				r.Does = proto.DialClose
			} else {
				r.Does = proto.DialNothing
			}
		},
		"status": func(r *proto.DialRow) {
			if r.Does == proto.DialReturns {
				r.Status = abi.ErrReset
			}
		},
		"news": func(r *proto.DialRow) {
			if r.Sends == proto.DialSilent {
				r.Sends = proto.DialLeaves
			} else {
				r.Sends = proto.DialSilent
			}
		},
		"kind": func(r *proto.DialRow) {
			if r.With != 0 {
				r.With, r.Without = r.Without, r.With
			}
		},
	}
	by := map[string]int{}
	for i, r := range proto.DialRows() {
		by[guestsMissed(t, list, slices.Delete(proto.DialRows(), i, i+1), fmt.Sprintf("without: %v", r))]++
		for what, change := range changes {
			rows := proto.DialRows()
			if change(&rows[i]); rows[i] != r && !dialEqual(what, r) {
				by[guestsMissed(t, list, rows, fmt.Sprintf("with another %s: %v", what, r))]++
			}
		}
	}
	reportFound(t, "connections of processes", by)
}

// dialEqual reports whether other news make no difference: there is no other end, or it notices by itself.
func dialEqual(what string, r proto.DialRow) bool {
	caller := slices.Contains([]proto.DialInput{proto.DialRefused, proto.DialLate, proto.DialEnds}, r.Input) && r.State == proto.DialAsking
	target := slices.Contains([]proto.DialState{proto.DialOfferedLeft, proto.DialTakenLeft, proto.DialAlone}, r.State) ||
		r.State == proto.DialNone && r.Input == proto.DialOpens
	noticed := r.Input == proto.DialOtherGone || r.Input == proto.DialNodeLost
	return what == "news" && (r.End == proto.DialCaller && caller || r.End == proto.DialTarget && target || noticed)
}

// guestsMissed returns by what devices of these rows are found out.
func guestsMissed(t *testing.T, list []*talk.GuestsTalk, rows []proto.DialRow, change string) string {
	t.Helper()
	dial, err := proto.NewDial(rows)
	if err != nil {
		return "by the table itself"
	}
	m := &talk.GuestsModel{Dial: dial}
	right, err := proto.NewDial(proto.DialRows())
	require.NoError(t, err)
	w := talk.NewGuestsWalk(right, m, 1)
	return foundOut(t, change, list, func(c *talk.GuestsTalk) error { return talk.PlayGuests(c, m) }, 20_000, w.Step)
}

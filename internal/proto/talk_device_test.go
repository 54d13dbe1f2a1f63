package proto_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	devices = append(devices, party[talk.Device]{"proto's device", func(*testing.T) talk.Device {
		return &talk.DeviceModel{Table: proto.DefaultDevice()}
	}})
}

// TestTalkCoversTheDevice requires that a conversation follows each transition of the device.
func TestTalkCoversTheDevice(t *testing.T) {
	m := &talk.DeviceModel{Table: proto.DefaultDevice(), Used: map[int]bool{}}
	for _, c := range conversations(t) {
		if c.HostOnly == "" {
			require.NoError(t, talk.PlayDevice(c, m))
		}
	}
	for i, r := range m.Table.Rows() {
		if !m.Used[i] {
			t.Errorf("no conversation follows: %v", r)
		}
	}
}

// TestDeviceTableIsUnambiguous: no two transitions fit one input.
func TestDeviceTableIsUnambiguous(t *testing.T) {
	rows := proto.DeviceRows()
	_, err := proto.NewDeviceTable(append(rows, rows[3]))
	require.ErrorContains(t, err, "two transitions: "+rows[3].String())
}

// TestEachDeviceRowMatters: a device that lacks a transition, or has another in its place, fails a
// conversation or leaves the walk that holds the firmware to the table.
func TestEachDeviceRowMatters(t *testing.T) {
	list := conversations(t)
	changes := map[string]func(r *proto.DeviceRow){
		"slot":   func(r *proto.DeviceRow) { r.Put = (r.Put + 1) % (proto.PutAnswer + 1) },
		"state":  func(r *proto.DeviceRow) { r.Next = (r.Next + 1) % (proto.DeviceTaken + 1) },
		"return": func(r *proto.DeviceRow) { r.Return = (r.Return + 2) % 3 },
		"status": func(r *proto.DeviceRow) {
			if r.Status != abi.OK {
				r.Status = abi.ErrReset
			}
		},
		"mark set":    func(r *proto.DeviceRow) { r.Set = 0 },
		"mark unset":  func(r *proto.DeviceRow) { r.Clear = 0 },
		"mark before": func(r *proto.DeviceRow) { r.With, r.Without = r.Without, r.With },
	}
	by := map[string]int{}
	for i, r := range proto.DeviceRows() {
		if !harmless(r) {
			by[missed(t, list, slices.Delete(proto.DeviceRows(), i, i+1), fmt.Sprintf("without: %v", r))]++
		}
		for what, change := range changes {
			rows := proto.DeviceRows()
			if change(&rows[i]); rows[i] != r && !equal(what, r) {
				by[missed(t, list, rows, fmt.Sprintf("another %s: %v", what, r))]++
			}
		}
	}
	reportFound(t, "device", by)
}

// harmless reports whether a transition may be left out: it says that nothing happens.
func harmless(r proto.DeviceRow) bool {
	return r.State == r.Next && r.Put == proto.PutNothing && r.Return == proto.Stays && r.Set|r.Clear == 0
}

// equal reports whether a change makes no difference: a transfer that ends does so in the same way whatever
// its lists, a copy that failed leaves none under way, channel_close returns 0, and what lay beside an offer
// means nothing to a transfer that moves.
func equal(what string, r proto.DeviceRow) bool {
	ends := r.Set&proto.DeviceEnding != 0 && r.State == proto.DeviceMoving
	taken := r.State == proto.DeviceOffered && r.Input == proto.Take
	returned := r.Input == proto.CloseHalf || r.Input == proto.EngineFailed
	return what == "state" && ends || what == "return" && returned || what == "mark unset" && taken
}

// missed returns by what a device of these rows is found out.
func missed(t *testing.T, list []*talk.Conversation, rows []proto.DeviceRow, change string) string {
	table, err := proto.NewDeviceTable(rows)
	if err != nil {
		return "by the table itself"
	}
	play := func(c *talk.Conversation) error {
		if c.HostOnly != "" {
			return nil
		}
		return talk.PlayDevice(c, &talk.DeviceModel{Table: table})
	}
	w := talk.NewDeviceWalk(proto.DefaultDevice(), &talk.DeviceModel{Table: table}, 1)
	return foundOut(t, change, list, play, 50_000, w.Step)
}

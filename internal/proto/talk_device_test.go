package proto_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	devices = append(devices, party[talk.Device]{"proto's device", func(*testing.T) talk.Device {
		return &talk.DeviceModel{Table: proto.DefaultDevice()}
	}})
}

// byEngine reports whether no conversation can cause a transition: pages are all there, and never
// busy, memory is large, eager transfers have moved before the next slot arrives, and messages have no
// deadline. The C tests of the firmware cause them.
func byEngine(r proto.DeviceRow) bool {
	return slices.Contains([]proto.DeviceInput{proto.EngineMoved, proto.EngineBusy, proto.EngineFailed, proto.TakeRange}, r.Input) ||
		r.State == proto.DeviceEager && r.Input != proto.EngineDone ||
		r.State == proto.DeviceMessage && r.Input == proto.Deadline
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
		if !m.Used[i] && !byEngine(r) {
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
	}
	by := map[string]int{}
	for i, r := range proto.DeviceRows() {
		if byEngine(r) {
			continue
		}
		if !harmless(r) {
			by[missed(t, list, slices.Delete(proto.DeviceRows(), i, i+1), fmt.Sprintf("without: %v", r))]++
		}
		for what, change := range changes {
			if equal(what, r) {
				continue
			}
			rows := proto.DeviceRows()
			change(&rows[i])
			by[missed(t, list, rows, fmt.Sprintf("another %s: %v", what, r))]++
		}
	}
	reportFound(t, "device", by)
}

// harmless reports whether a transition may be left out: it says that nothing happens.
func harmless(r proto.DeviceRow) bool {
	return r.State == r.Next && r.Put == proto.PutNothing && r.Return == proto.Stays && r.Set|r.Clear == 0
}

// equal reports whether another state or return makes no difference: a transfer that ends is over
// before anything else happens, an eager one that begins has moved, and channel_close returns 0.
func equal(what string, r proto.DeviceRow) bool {
	ends := r.Set&proto.DeviceEnding != 0
	return ends && what != "slot" || what == "return" && (r.Next == proto.DeviceEager || r.Input == proto.CloseHalf)
}

// missed returns by what a device of these rows is found out.
func missed(t *testing.T, list []*talk.Conversation, rows []proto.DeviceRow, change string) string {
	table, err := proto.NewDeviceTable(rows)
	require.NoError(t, err)
	play := func(c *talk.Conversation) error {
		if c.HostOnly != "" {
			return nil
		}
		return talk.PlayDevice(c, &talk.DeviceModel{Table: table})
	}
	w := talk.NewDeviceWalk(proto.DefaultDevice(), &talk.DeviceModel{Table: table}, 1)
	return foundOut(t, change, list, play, 50_000, w.Step)
}

package mesh

import (
	"context"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// PacketMax is the longest payload of a packet in bytes.
const PacketMax = 4096

// Load is what nodes are asked to send.
type Load struct {
	From int // a node, or All
	To   int // a node, or All
	Size int // bytes of each packet
	// Count of packets from each node to each it sends to.
	Count int
}

func (m *Mesh) check(l Load) error {
	switch {
	case l.From != All && !m.has(l.From) || l.To != All && !m.has(l.To):
		return fmt.Errorf("from node %d to %d: %w", l.From, l.To, ErrUnknown)
	case l.Size < 0 || l.Size > PacketMax:
		return fmt.Errorf("packets of %d bytes: %w: want 0..%d", l.Size, bridge.ErrTooLarge, PacketMax)
	case l.Count < 1:
		return fmt.Errorf("%d packets: %w", l.Count, bridge.ErrInvalid)
	}
	return nil
}

// senders lists the nodes that a load is for.
func (m *Mesh) senders(l Load) []int {
	if l.From != All {
		return []int{l.From}
	}
	var all []int
	for node := range m.nodes {
		if m.here(node) {
			all = append(all, node)
		}
	}
	return all
}

// Totals are sums over all nodes of this process.
type Totals struct {
	Sent, Came, Bytes    uint64 // packets, and payload of those that came
	Changed, Doubled     uint64 // must be zero
	Refused, Unreachable uint64 // without a way from the start, and on the way
	Forwarded, Detours   uint64
	Repeated, Errors     uint64 // of links
	Blocked              time.Duration
}

// Totals adds up what all nodes counted.
func (m *Mesh) Totals() (t Totals, err error) {
	for node := range m.nodes {
		if !m.here(node) {
			continue
		}
		s, err := m.State(node)
		if err != nil {
			return t, err
		}
		t.Sent += s.Sent
		t.Came += s.Came
		t.Bytes += s.Bytes
		t.Changed += s.Changed
		t.Doubled += s.Doubled
		t.Refused += s.Refused
		t.Unreachable += s.Unreachable
		t.Forwarded += s.Forwarded
		t.Detours += s.Detours
		t.Blocked += s.Blocked
		for _, l := range s.Links {
			t.Repeated += l.Repeated
			t.Errors += l.Errors
		}
	}
	return t, nil
}

// Start has nodes send a load; ErrBusy if one still sends another.
func (m *Mesh) Start(l Load) error {
	if err := m.check(l); err != nil {
		return err
	}
	for _, node := range m.senders(l) {
		ok := false
		err := m.with(node, func(f *firmware.Mesh) {
			ok = f.Send(node, firmware.MeshLoad{To: l.To, Size: l.Size, Count: l.Count})
		})
		if err == nil && !ok {
			err = fmt.Errorf("node %d: %w", node, ErrBusy)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Done reports whether a node has sent all that it was asked to.
func (m *Mesh) Done(node int) (done bool, err error) {
	err = m.with(node, func(f *firmware.Mesh) { done = f.Done(node) })
	return done, err
}

// Wait returns when a load is sent and nothing of it is under way: everything came,
// or nothing more does for quiet.
func (m *Mesh) Wait(ctx context.Context, l Load, quiet time.Duration) error {
	var last Totals
	since := time.Now()
	return m.poll(ctx, func() (bool, error) {
		done := true
		for _, node := range m.senders(l) {
			sent, err := m.Done(node)
			if err != nil {
				return false, err
			}
			done = done && sent
		}
		t, err := m.Totals()
		if err != nil || done && t.Came == t.Sent {
			return true, err
		}
		if t.Came != last.Came || t.Sent != last.Sent {
			last, since = t, time.Now()
		}
		return done && time.Since(since) > quiet, nil
	})
}

// Ping sends packets from a node to another and back, one after the other, and
// returns how long each took.
func (m *Mesh) Ping(ctx context.Context, from, to, size, count int) ([]time.Duration, error) {
	if err := m.check(Load{From: from, To: to, Size: size, Count: count}); err != nil {
		return nil, err
	}
	if from == All || to == All {
		return nil, fmt.Errorf("pings from all or to all: %w", ErrUnknown)
	}
	ok := false
	err := m.with(from, func(f *firmware.Mesh) {
		ok = f.Send(from, firmware.MeshLoad{To: to, Size: size, Count: count, Ping: true})
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("node %d: %w", from, ErrBusy)
	}
	var took []time.Duration
	err = m.poll(ctx, func() (bool, error) {
		err := m.with(from, func(f *firmware.Mesh) { took = f.Pings(from, count) })
		return len(took) > 0, err
	})
	return took, err
}

package mailbox

import (
	"testing"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// BenchmarkHostPath is the host's part of a message alone: the device has answered before it is
// asked, on the same thread.
func BenchmarkHostPath(b *testing.B) {
	msg := make([]byte, 56)
	hostPath(b, "Send", wire.TypeAck, wire.Ack{State: wire.StateConsumed},
		func(c *channel) error { return c.Send(background, msg) })
	hostPath(b, "Receive", wire.TypeDirect, wire.Ack{},
		func(c *channel) error { _, err := c.Receive(background, msg); return err })
	hostPath(b, "SendInd", wire.TypeDone, wire.Ack{State: wire.StateDone, Processed: 56},
		func(c *channel) error { return c.SendInd(background, msg) })
}

// hostPath measures a call that finds a slot of the device: a record, or the bytes of one.
func hostPath(b *testing.B, name string, kind wire.Type, record wire.Ack, call func(*channel) error) {
	b.Run(name, func(b *testing.B) {
		f := newFake(b)
		c := f.subscribe(f.open())
		var s wire.Slot
		for b.Loop() {
			record.Transaction++
			s = wire.Slot{}
			*s.Ack() = record
			f.place(fakeMailbox, f.header(kind, abi.PayloadSize, record.Transaction), s)
			if err := call(c); err != nil {
				b.Fatal(err)
			}
			for f.pollInto(fakeMailbox, &s) {
			}
		}
	})
}

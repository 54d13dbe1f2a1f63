package mailbox

import (
	"testing"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// BenchmarkHostPath is the host's part of a message alone: the device has answered before it is
// asked, on the same thread.
func BenchmarkHostPath(b *testing.B) {
	b.Run("Send", func(b *testing.B) {
		f := newFake(b)
		c := f.subscribe(f.open())
		msg := make([]byte, 56)
		var s abi.Slot
		id := uint64(0)
		for b.Loop() {
			id++
			s = abi.Slot{}
			*s.Ack() = abi.Ack{Transaction: id, State: abi.StateConsumed}
			f.place(fakeMailbox, f.header(abi.TypeAck, abi.PayloadSize, id), s)
			if err := c.Send(background, msg); err != nil {
				b.Fatal(err)
			}
			f.pollInto(fakeMailbox, &s)
		}
	})
	b.Run("Receive", func(b *testing.B) {
		f := newFake(b)
		c := f.subscribe(f.open())
		msg := make([]byte, 56)
		var s abi.Slot
		id := uint64(0)
		for b.Loop() {
			id++
			f.place(fakeMailbox, f.header(abi.TypeDirect, abi.PayloadSize, id), s)
			if _, err := c.Receive(background, msg); err != nil {
				b.Fatal(err)
			}
			f.pollInto(fakeMailbox, &s)
		}
	})
	b.Run("SendInd", func(b *testing.B) {
		f := newFake(b)
		c := f.subscribe(f.open())
		msg := make([]byte, 56)
		var s abi.Slot
		id := uint64(0)
		for b.Loop() {
			id++
			s = abi.Slot{}
			*s.Ack() = abi.Ack{Transaction: id, State: abi.StateDone, Processed: 56}
			f.place(fakeMailbox, f.header(abi.TypeDone, abi.PayloadSize, id), s)
			if err := c.SendInd(background, msg); err != nil {
				b.Fatal(err)
			}
			for f.pollInto(fakeMailbox, &s) {
			}
		}
	})
}

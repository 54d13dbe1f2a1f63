package proto

import (
	"fmt"
	"sync"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// DeviceHalf is one direction of a channel at the device. It is a value, as [Half].
type DeviceHalf struct {
	Direction abi.Direction
	State     DeviceState
	Marks     DeviceMarks
	Next      uint64 // id of the next transaction
}

// Present returns the id of the transaction under way, or of the last one.
func (h DeviceHalf) Present() uint64 { return h.Next - 1 }

// DeviceTable is a compiled list of the device's transitions.
type DeviceTable struct {
	rows  []DeviceRow
	steps [2][deviceStates][deviceMarksAll + 1][deviceInputs]uint8 // a row's index and 1
}

var deviceDefaults = sync.OnceValue(func() *DeviceTable {
	t, err := NewDeviceTable(DeviceRows())
	if err != nil {
		panic(err) // a test makes sure that it does not come to this
	}
	return t
})

// DefaultDevice returns the table of the device's side of the protocol.
func DefaultDevice() *DeviceTable { return deviceDefaults() }

// NewDeviceTable compiles rows, 255 at the most. Two rows for one input in one state are an error.
func NewDeviceTable(rows []DeviceRow) (*DeviceTable, error) {
	t := &DeviceTable{rows: rows}
	for i, r := range rows {
		for m := DeviceMarks(0); m <= deviceMarksAll; m++ {
			if m&r.With != r.With || m&r.Without != 0 {
				continue
			}
			at := &t.steps[r.Direction][r.State][m][r.Input]
			if *at != 0 {
				return nil, fmt.Errorf("two transitions: %v and %v", rows[*at-1], r)
			}
			*at = uint8(i + 1)
		}
	}
	return t, nil
}

// Rows returns the transitions that the table was made of.
func (t *DeviceTable) Rows() []DeviceRow { return t.rows }

// Step returns the transition of an input and its index; -1 if there is none.
func (t *DeviceTable) Step(h DeviceHalf, in DeviceInput) (DeviceRow, int) {
	i := int(t.steps[h.Direction][h.State][h.Marks&deviceMarksAll][in]) - 1
	if i < 0 {
		return DeviceRow{}, i
	}
	return t.rows[i], i
}

// From returns the half that follows a transition.
func (h DeviceHalf) From(r DeviceRow) DeviceHalf {
	h.State = r.Next
	h.Marks = h.Marks&^r.Clear | r.Set
	if r.Next == DeviceIdle {
		h.Marks &^= deviceBrief
	}
	switch r.Input {
	case HearMessage, HearCall, HearBegin, HearPages, HearBadBegin:
		if r.Direction == abi.H2D {
			h.Next++
		}
	case GiveMessage, GiveTransfer, GivePosted:
		if r.Return != Fails {
			h.Next++
		}
	}
	return h
}

// String describes the transition in a line.
func (r DeviceRow) String() string {
	return transition("device's", r.Direction, r.State, r.With, r.Without, r.Input, r.Next, r.Put)
}

// transition describes one of a half, of the device or of an end.
func transition[M DeviceMarks | ConnectionMarks](of string, d abi.Direction, from DeviceState, with, without M, in DeviceInput, to DeviceState, put Put) string {
	s := fmt.Sprintf("%s %v %v", of, d, from)
	if with != 0 {
		s += fmt.Sprintf(" with %v", with)
	}
	if without != 0 {
		s += fmt.Sprintf(" without %v", without)
	}
	s = fmt.Sprintf("%s: %v → %v", s, in, to)
	if put != PutNothing {
		s += fmt.Sprintf(", puts %v", put)
	}
	return s
}

// SubscriptionState is the state of a target's subscription at the device.
type SubscriptionState uint8

// States of a subscription.
const (
	SubscriptionFree   SubscriptionState = iota // nobody is subscribed
	SubscriptionOpen                            // a host or a process is
	SubscriptionEnding                          // it closed both halves, and a transfer still moves
)

// SubscriptionOver reports whether CLOSE of both halves is to be put: the host closed both, and
// nothing moves any more. It returns the state of the subscription, too.
func SubscriptionOver(halves [2]DeviceHalf) (s SubscriptionState, over bool) {
	s = SubscriptionOpen
	if halves[0].Marks&halves[1].Marks&DeviceShut == 0 {
		return s, false
	}
	for _, h := range halves {
		if h.State == DeviceMoving || h.State == DeviceEager {
			return SubscriptionEnding, false
		}
	}
	return SubscriptionFree, true
}

package talk

import (
	"fmt"
	"math/rand/v2"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// GuestsWalk is a conversation of a process that connects which chance writes, played to the devices of
// rows and to other ones. The same seed gives the same walk.
type GuestsWalk struct {
	Model GuestsModel

	other Guests
	rand  *rand.Rand
	left  int // steps until the next conversation
	past  events
}

// NewGuestsWalk begins a walk along rows, to compare another device with.
func NewGuestsWalk(dial *proto.Dial, other Guests, seed uint64) *GuestsWalk {
	return &GuestsWalk{
		Model: GuestsModel{Dial: dial, Used: map[int]bool{}},
		other: other, rand: rand.New(rand.NewPCG(seed, 3)),
	}
}

// Step makes the next step, and returns how the devices differ after it.
func (w *GuestsWalk) Step() error {
	if w.left--; w.left > 0 {
		return w.both(w.event())
	}
	w.left = 20
	kind := guestKinds[w.rand.IntN(len(guestKinds))]
	w.past = events{fmt.Sprintf("of %q", kind)}
	if err := w.Model.OpenGuests(kind); err != nil {
		return err
	}
	err := w.other.OpenGuests(kind)
	if err == nil && w.rand.IntN(4) == 0 {
		err = w.both("crowd")
	}
	return err
}

// event chooses one that an honest host, and a process that connects once at a time, may cause.
func (w *GuestsWalk) event() string {
	m := &w.Model
	p, o := m.state[proto.DialCaller], m.state[proto.DialTarget]
	events := []string{"look"}
	add := func(when bool, all ...string) {
		if when {
			events = append(events, all...)
		}
	}
	far, rarely := m.kind&proto.DialFar != 0, w.rand.IntN(8) == 0
	add(p == proto.DialNone && o == proto.DialNone, "p connects", "p connects")
	add(p != proto.DialNone && p != proto.DialAsking, "p closes")
	add(rarely, "p ends")
	add(m.crowd && !m.away, "turn")
	add(m.host() && m.word, "o takes", "o takes")
	add(m.host() && !m.left && (o == proto.DialTaken || o == proto.DialTakenLeft), "o opens", "o opens")
	add(m.host() && !m.left && !m.crowd && (o == proto.DialNone || o == proto.DialOpen || o == proto.DialAlone), "o opens")
	add(o == proto.DialOpen || o == proto.DialAlone, "o closes")
	add(rarely && m.host() && !m.gone, "o stops")
	add(rarely && !m.left, "o ends")
	add(rarely && far && !m.away, "lose")
	add(m.away, "found")
	add(rarely && far && w.rand.IntN(4) == 0, "late")
	return events[w.rand.IntN(len(events))]
}

func (w *GuestsWalk) both(event string) error {
	return w.past.both(event, w.Model.Guest, w.other.Guest)
}

// events are those of a walk since its conversation began, with what was observed.
type events []string

// both has a device of rows and another one do something, and compares what is observed.
func (e *events) both(event string, model, other func(event string) (string, error)) error {
	want, err := model(event)
	if err != nil {
		return err
	}
	got, err := other(event)
	if err == nil && got != want {
		err = fmt.Errorf("%q, not %q", got, want)
	}
	if err != nil {
		return fmt.Errorf("%w; before: %q", err, append(*e, event))
	}
	*e = append(*e, event+": "+want)
	return nil
}

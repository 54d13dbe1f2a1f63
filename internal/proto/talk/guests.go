package talk

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// Guests is a party that plays a device, or the devices of two nodes, on which a process p connects to
// another process or to a host, o.
type Guests interface {
	// OpenGuests begins a conversation: the target is there, and nobody has connected.
	OpenGuests(kind proto.DialKind) error
	// Guest makes something happen, and returns what p and o observe then, p first.
	Guest(event string) (string, error)
}

// GuestsStep is one line of a conversation of guests.
type GuestsStep struct {
	Line          int
	Event, Answer string
}

// GuestsTalk is a conversation of a process that connects. A line is one of
//
//	talk NAME
//	of [near|far] [host|process]   only such connections; without the line all
//	EVENT[: ANSWER]                something happens, and is observed; without an answer by nobody
//
// An EVENT is one of
//
//	p connects, p closes, p ends   the process; it closes both halves
//	o closes, o ends               the target: closes both halves; the process ends, or the host detaches
//	o takes, o opens               the host: the listener's message; its channel
//	o stops                        the host stops its listener
//	crowd, turn                    another process connects before; it leaves
//	lose, found                    no packet arrives at the other node; they do again
//	late                           eleven seconds pass
//	look                           o observes whether a place is kept for any connection
//
// An ANSWER has for each of p and o what its calls return, offer for the listener's message, and CLOSE for
// that of both halves, with commas between. Each conversation ends with that of both, which keep nothing.
type GuestsTalk struct {
	Name  string
	Kinds []proto.DialKind
	Steps []GuestsStep
}

// guestKinds are all kinds of connections.
var guestKinds = []proto.DialKind{0, proto.DialHost, proto.DialFar, proto.DialHost | proto.DialFar}

// LoadGuests reads conversations of guests.
func LoadGuests(r io.Reader) (all []*GuestsTalk, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		event, answer, _ := strings.Cut(text, ":")
		event, answer = strings.TrimSpace(event), strings.TrimSpace(answer)
		word, rest, _ := strings.Cut(event, " ")
		switch {
		case event == "":
		case word == "talk":
			all = append(all, &GuestsTalk{Name: rest, Kinds: guestKinds})
		case len(all) == 0:
			return nil, fmt.Errorf("line %d: %q before the first talk", n, event)
		case word == "of":
			c := all[len(all)-1]
			c.Kinds = slices.DeleteFunc(slices.Clone(guestKinds), func(k proto.DialKind) bool { return !isOf(k, strings.Fields(rest)) })
		default:
			c := all[len(all)-1]
			c.Steps = append(c.Steps, GuestsStep{n, event, answer})
		}
	}
	return all, lines.Err()
}

// isOf reports whether a kind has all properties.
func isOf(k proto.DialKind, words []string) bool {
	far, host := k&proto.DialFar != 0, k&proto.DialHost != 0
	is := map[string]bool{"near": !far, "far": far, "host": host, "process": !host}
	return !slices.ContainsFunc(words, func(w string) bool { return !is[w] })
}

// PlayGuests plays a conversation to a party, of each kind of connections that it is of.
func PlayGuests(c *GuestsTalk, g Guests) error {
	for _, k := range c.Kinds {
		if err := c.play(k, g); err != nil {
			return fmt.Errorf("%s of %q: %w", c.Name, k, err)
		}
	}
	return nil
}

func (c *GuestsTalk) play(k proto.DialKind, g Guests) error {
	if err := g.OpenGuests(k); err != nil {
		return err
	}
	return c.steps(g.Guest, []string{"p ends", "o ends"}, "o free")
}

// steps has the events of a conversation happen, then those of its end, after which nothing is kept.
func (c *GuestsTalk) steps(happens func(event string) (string, error), end []string, free string) error {
	for _, s := range c.Steps {
		got, err := happens(s.Event)
		if err == nil && got != s.Answer {
			err = fmt.Errorf("%s: %q, not %q", s.Event, got, s.Answer)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", s.Line, err)
		}
	}
	for _, event := range end {
		if _, err := happens(event); err != nil {
			return err
		}
	}
	got, err := happens("look")
	if err == nil && got != free {
		err = fmt.Errorf("after the end: %q", got)
	}
	return err
}

var _ Guests = (*Program)(nil)

// OpenGuests begins a conversation of a process that connects.
func (p *Program) OpenGuests(kind proto.DialKind) error {
	_, err := p.ask("guests open %d", kind)
	return err
}

// Guest makes something happen, and returns what is observed.
func (p *Program) Guest(event string) (string, error) {
	words, err := p.ask("guests %s", event)
	if err != nil {
		return "", err
	}
	return strings.Join(words[1:], " "), nil
}

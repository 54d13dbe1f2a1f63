package talk

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Hosts is a party that plays the device between two hosts, 0 and 1. The second one listens.
type Hosts interface {
	// OpenHosts begins a conversation: the second host listens, and nobody has connected. The ids are
	// the next ones of h2d and d2h of the first host, then of the second.
	OpenHosts(next [4]uint64) error
	// Event makes something happen: connect, accept, refuse, time; the others of a host.
	Event(what string, host int) error
	// DeliverOf gives the device a slot of a host. A late one is taken together with the next that is
	// not, and so is what follows from both: an end hears of the other once all are taken.
	DeliverOf(host int, s *wire.Slot, late bool) error
	// NextOf returns the next slot for a host; nil if there is none.
	NextOf(host int) (*wire.Slot, error)
}

// hostsNext are the next ids that each conversation of hosts begins with.
var hostsNext = [4]uint64{1, 11, 21, 31}

// hostsOpen is the subscription of either host.
var hostsOpen = Open{Generation: 9}

// HostsStep is one line of a conversation of hosts.
type HostsStep struct {
	Line int
	Word string // ">", ">~" and "<" are slots, of Host; else what happens
	Host int
	Slot wire.Slot
	said *said
}

// HostsTalk is a conversation of two hosts. A line is one of
//
//	talk NAME
//	connect, accept, refuse, time     the first host connects; the second takes the target or not; two seconds pass
//	joined                            connect, subscribe a, accept, subscribe b
//	subscribe a|b, detach a|b
//	fail a|b                          nothing reaches the pages of a host any more
//	slow a|b, quick a|b               what reaches them is not done yet, until it is, or a host detaches
//	a > SLOT, b > SLOT                a host puts a slot
//	a >~ SLOT, b >~ SLOT              … which is taken with the next one, before the ends hear of each other
//	a < SLOT, b < SLOT                the next slot for a host is this
//
// A message has the bytes 0, 1, 2 and so on. The first host's next ids are 1 and 11, the second's 21 and 31.
type HostsTalk struct {
	Name  string
	File  string
	Steps []HostsStep
}

// LoadHosts reads every .talk file of a folder as conversations of two hosts.
func LoadHosts(files fs.FS) (all []*HostsTalk, err error) {
	names, err := fs.Glob(files, "*.talk")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := files.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			text, _, _ := strings.Cut(lines.Text(), "#")
			words := strings.Fields(text)
			if len(words) == 0 {
				continue
			}
			if words[0] == "talk" {
				c := &HostsTalk{Name: strings.TrimSuffix(path.Base(name), ".talk") + "/" + strings.Join(words[1:], " "), File: name}
				all = append(all, c)
			} else if len(all) == 0 {
				err = fmt.Errorf("%q before the first talk", words[0])
			} else {
				err = all[len(all)-1].take(n, words)
			}
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// hostOf returns the host of a letter; -1 if it is none.
func hostOf(word string) int { return slices.Index([]string{"a", "b"}, word) }

// take reads one line.
func (c *HostsTalk) take(line int, words []string) error {
	step := HostsStep{Line: line, Word: words[0]}
	switch {
	case len(words) == 1 && words[0] == "joined":
		for _, s := range []HostsStep{{Word: "connect"}, {Word: "subscribe"}, {Word: "accept"}, {Word: "subscribe", Host: 1}} {
			s.Line = line
			c.Steps = append(c.Steps, s)
		}
		return nil
	case len(words) == 1 && slices.Contains([]string{"connect", "accept", "refuse", "time"}, words[0]):
	case len(words) == 2 && slices.Contains([]string{"subscribe", "detach", "fail", "slow", "quick"}, words[0]) && hostOf(words[1]) >= 0:
		step.Host = hostOf(words[1])
	case len(words) > 2 && hostOf(words[0]) >= 0 && slices.Contains([]string{">", ">~", "<"}, words[1]):
		s, err := parseSlot(words[2:], abi.H2D)
		if err != nil {
			return err
		}
		s.half = travels(s.kind, s.half, words[1] != "<")
		if step.Slot, err = s.slot(hostsOpen.split(s.get("size", 0)), &hostsOpen); err != nil {
			return err
		}
		if s.kind == wire.TypeDirect {
			n := int(s.get("length", length))
			for i := range step.Slot.Bytes() {
				step.Slot.Bytes()[i] = byte(i)
			}
			clear(step.Slot.Bytes()[min(n, abi.PayloadSize):])
		}
		step.Word, step.Host, step.said = words[1], hostOf(words[0]), s
	default:
		return fmt.Errorf("unknown words %q", words)
	}
	c.Steps = append(c.Steps, step)
	return nil
}

// PlayHosts plays a conversation to the device between two hosts. The error names file and line.
func PlayHosts(c *HostsTalk, d Hosts) error {
	if err := d.OpenHosts(hostsNext); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	for i := range c.Steps {
		if err := c.Steps[i].play(d); err != nil {
			return fmt.Errorf("%s:%d: %w", c.File, c.Steps[i].Line, err)
		}
	}
	for host := range 2 {
		rest, err := d.NextOf(host)
		if err == nil && rest != nil {
			err = fmt.Errorf("the device also put %s for host %d", rest, host)
		}
		if err != nil {
			return fmt.Errorf("%s: the end of %s: %w", c.File, c.Name, err)
		}
	}
	return nil
}

func (s *HostsStep) play(d Hosts) error {
	switch s.Word {
	case ">", ">~":
		return d.DeliverOf(s.Host, &s.Slot, s.Word == ">~")
	case "<":
		got, err := d.NextOf(s.Host)
		if err == nil && got == nil {
			err = fmt.Errorf("the device put nothing, not %s", &s.Slot)
		}
		if err != nil {
			return err
		}
		return s.said.match(&s.Slot, got)
	}
	return d.Event(s.Word, s.Host)
}

var _ Hosts = (*Program)(nil)

// OpenHosts begins a conversation of two hosts.
func (p *Program) OpenHosts(next [4]uint64) error {
	_, err := p.ask("hosts open %d %d %d %d %d", next[0], next[1], next[2], next[3], hostsOpen.Generation)
	return err
}

// Event makes something happen between two hosts. An error is that of the next line.
func (p *Program) Event(what string, host int) error {
	p.queue("hosts %s %c", what, 'a'+host)
	return nil
}

// DeliverOf gives the device a slot of a host. An error is that of the next line.
func (p *Program) DeliverOf(host int, s *wire.Slot, late bool) error {
	how := map[bool]string{false: "deliver", true: "put"}[late]
	p.queue("hosts %s %c %s", how, 'a'+host, words(s))
	return nil
}

// NextOf returns the next slot for a host.
func (p *Program) NextOf(host int) (*wire.Slot, error) {
	return p.slot("hosts next %c", 'a'+host)
}

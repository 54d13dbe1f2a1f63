package talk

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Host is a party that plays the host.
type Host interface {
	// Open begins a conversation: nothing was put before.
	Open(*Open) error
	// Put makes the host put a slot, and returns the state of its half then. An error means that
	// the host may not put that now.
	Put(*wire.Slot) (proto.State, error)
	// Take gives the host a slot of the device. The state is that of the half that the slot is
	// about; it counts only where a conversation names one.
	Take(*wire.Slot) (proto.Event, proto.State, error)
	// Do makes the host hold or release the offer, or shut a half.
	Do(what string, half abi.Direction) (proto.State, error)
}

// Device is a party that plays the device.
type Device interface {
	// Open begins a conversation: a process runs whose one port is the channel.
	Open(*Open) error
	// Call makes the process begin a call, in the words of the conversation.
	Call(words []string) error
	// Returned returns the result of the call that has returned: bytes, or the negative status.
	Returned() (int, error)
	// Deliver gives the device a slot of the host.
	Deliver(*wire.Slot) error
	// Next returns the next slot that the device has put; nil if there is none, however long one
	// waits.
	Next() (*wire.Slot, error)
}

// PlayHost plays a conversation to a host. The error names file and line.
func PlayHost(c *Conversation, h Host) error {
	if err := h.Open(&c.Open); err != nil {
		return c.at(c.Line, err)
	}
	for i := range c.Steps {
		if err := hostStep(&c.Steps[i], h); err != nil {
			return c.at(c.Steps[i].Line, err)
		}
	}
	return nil
}

func hostStep(s *Step, h Host) error {
	var state proto.State
	var err error
	switch s.Kind {
	case HostPuts:
		state, err = h.Put(&s.Slot)
	case HostDoes:
		state, err = h.Do(s.Words[0], s.Half)
	case DevicePuts:
		event, state, err := h.Take(&s.Slot)
		if err != nil {
			return err
		}
		return s.compare(event, state)
	default:
		return nil
	}
	if err == nil && state != s.State {
		err = fmt.Errorf("the half is %v, not %v", state, s.State)
	}
	return err
}

// compare holds what a host made of a slot against the conversation.
func (s *Step) compare(event proto.Event, state proto.State) error {
	if event != s.Event {
		return fmt.Errorf("%v is %v to the host, not %v", &s.Slot, event, s.Event)
	}
	if s.HasState && state != s.State {
		return fmt.Errorf("the half is %v after %v, not %v", state, event, s.State)
	}
	return nil
}

// PlayDevice plays a conversation to a device. The error names file and line.
func PlayDevice(c *Conversation, d Device) error {
	if err := d.Open(&c.Open); err != nil {
		return c.at(c.Line, err)
	}
	var late []*Step
	for i := range c.Steps {
		s := &c.Steps[i]
		var err error
		switch {
		case s.Kind == HostPuts && s.Late:
			late = append(late, s)
		case s.Kind == Arrive:
			for _, l := range late {
				if err == nil {
					err = d.Deliver(&l.Slot)
				}
			}
			late = nil
		default:
			err = deviceStep(s, d)
		}
		if err != nil {
			return c.at(s.Line, err)
		}
	}
	rest, err := d.Next()
	if err == nil && rest != nil {
		err = fmt.Errorf("the device also put %s", rest)
	}
	if err != nil {
		return c.at(c.Steps[len(c.Steps)-1].Line, err)
	}
	return nil
}

func deviceStep(s *Step, d Device) error {
	switch s.Kind {
	case HostPuts:
		return d.Deliver(&s.Slot)
	case Target:
		return d.Call(s.Words)
	case Returns:
		n, err := d.Returned()
		if err == nil && n != s.Result {
			err = fmt.Errorf("the target's call returns %d, not %d", n, s.Result)
		}
		return err
	case Pending:
		if n, err := d.Returned(); err == nil {
			return fmt.Errorf("the target's call has returned %d", n)
		}
	case DevicePuts:
		got, err := d.Next()
		switch {
		case err != nil:
			return err
		case got == nil:
			return fmt.Errorf("the device put nothing, not %s", &s.Slot)
		}
		return s.Match(got)
	}
	return nil
}

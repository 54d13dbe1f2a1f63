package scripted

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Party is a device that plays conversations: it has one process with one
// channel, and nothing of it runs beside its callers.
type Party struct {
	dev  *Device
	proc *process
	call *request
	put  []wire.Slot
}

var _ talk.Device = (*Party)(nil)

// buffer is the host memory of a conversation.
type buffer [1 << 20]byte

// Ring does nothing: nobody sleeps.
func (*buffer) Ring(int) {}

// Move copies between device memory and the buffer.
func (b *buffer) Move(mem []byte, address uint64, d abi.Direction) bool {
	at := address - talk.Address
	if at > uint64(len(b)) || uint64(len(mem)) > uint64(len(b))-at {
		return false
	}
	if d == abi.H2D {
		copy(mem, b[at:])
	} else {
		copy(b[at:], mem)
	}
	return true
}

// Open begins a conversation.
func (p *Party) Open(o *talk.Open) error {
	sh := Shape{Window: int(o.Window), Channels: 64, Runs: int(o.Runs), Eager: wire.EagerEntries}.withDefaults()
	s := newDevice(sh, Hooks{Give: func(m wire.Slot) []wire.Slot {
		p.put = append(p.put, m)
		return nil
	}}, &buffer{}, make([]byte, sh.areaSize()))
	s.epochID = talk.Epoch
	s.cur = s.newEpoch()
	c := s.newChannelLocked(talk.Channel)
	c.open, c.live, c.gen, c.next = true, true, o.Generation, o.Next
	*p = Party{dev: s, proc: &process{s: s, l: s.cur, ports: []*channel{c}}}
	c.proc = p.proc
	return nil
}

// Call makes the process begin a call.
func (p *Party) Call(words []string) error {
	s := p.dev
	s.mu.Lock()
	defer s.mu.Unlock()
	if words[0] == "stop" {
		p.proc.stopLocked(abi.ErrStopped)
		return nil
	}
	var n int
	if len(words) > 1 && words[0] != "close" {
		var err error
		if n, err = strconv.Atoi(words[1]); err != nil {
			return err
		}
	}
	c := p.proc.ports[0]
	switch words[0] {
	case "read":
		p.begin(readMessage, make([]byte, n))
	case "read_ind":
		p.begin(readTransfer, make([]byte, n))
	case "wait":
		p.begin(look, nil)
	case "write":
		message := make([]byte, n)
		for i := range message {
			message[i] = byte(c.next[abi.D2H]) + byte(i)
		}
		p.begin(writeMessage, message)
	case "write_ind":
		p.begin(writeTransfer, make([]byte, n))
	case "close":
		halves := map[string]uint32{"h2d": wire.ParkH2D, "d2h": wire.ParkD2H, "both": 3}[words[1]]
		s.endHalvesLocked(c, halves, abi.OK)
	default:
		return fmt.Errorf("a target does not call %q", words)
	}
	return nil
}

func (p *Party) begin(v verb, mem []byte) { p.call = p.proc.beginLocked(0, v, mem) }

// Returned returns the result of the call that has returned.
func (p *Party) Returned() (int, error) {
	if p.call == nil {
		return 0, fmt.Errorf("the target has not called")
	}
	select {
	case r := <-p.call.result:
		v := p.call.verb
		p.call = nil
		if r.status != abi.OK {
			return -int(r.status), nil
		}
		if v == readMessage {
			return len(r.msg), nil
		}
		return 0, nil
	default:
		return 0, fmt.Errorf("the target's call has not returned")
	}
}

// Deliver gives the device a slot of the host.
func (p *Party) Deliver(m *wire.Slot) error {
	p.dev.mu.Lock()
	defer p.dev.mu.Unlock()
	p.dev.handleLocked(m)
	return nil
}

// Next returns the next slot that the device has put; before it says that there
// is none, every timeout is over.
func (p *Party) Next() (*wire.Slot, error) {
	p.dev.mu.Lock()
	defer p.dev.mu.Unlock()
	if len(p.put) == 0 {
		p.dev.expireLocked(time.Now().Add(time.Hour))
	}
	if len(p.put) == 0 {
		return nil, nil
	}
	m := p.put[0]
	p.put = p.put[1:]
	return &m, nil
}

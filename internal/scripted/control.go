package scripted

import (
	"bytes"
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// bootPrograms starts what is always there. Must hold mu.
func (s *Device) bootPrograms() {
	control := s.newChannelLocked(abi.TargetControl)
	control.open, control.live = true, true
	s.startLocked(s.control, []*channel{control}, 0)
	s.startLocked(loopback, []*channel{s.newChannelLocked(abi.TargetLoopback)}, 0)
}

func (s *Device) newChannelLocked(id uint32) *channel {
	c := &channel{id: id, next: [2]uint64{1, 1}}
	s.cur.channels[id] = c
	return c
}

// control answers requests on channel 0.
func (s *Device) control(p *process) {
	for {
		msg, st := p.read(0)
		if st != abi.OK {
			return
		}
		var m wire.Slot
		copy(m.Bytes()[:], msg)
		c := m.Control()
		opened := s.serve(c)
		if p.write(0, m.Bytes()[:]) != abi.OK {
			return
		}
		if opened != nil {
			s.mu.Lock()
			opened.live = opened.open
			s.offerOutLocked(opened)
			s.mu.Unlock()
		}
	}
}

// serve turns a request into its reply; for an OPEN that worked it returns the
// channel, which goes live when the host has taken the reply.
func (s *Device) serve(c *wire.Control) (opened *channel) {
	switch c.Op {
	case wire.ControlOpen:
		return s.serveOpen(c)
	case wire.ControlStart:
		s.serveStart(c)
	case wire.ControlStop:
		s.serveStop(c)
	case wire.ControlProgram:
		names := programNames()
		if c.A >= uint64(len(names)) {
			c.Status = uint16(abi.ErrNoProgram)
			return nil
		}
		setName(c, names[c.A])
	case wire.ControlMemory:
		if c.A >= abi.MemoryCount {
			c.Status = uint16(abi.ErrInvalid)
			return nil
		}
		c.A, c.B, c.C = c.A<<abi.MemoryShift, s.shape.EMEM, s.shape.EMEM
	case wire.ControlRunning:
		s.serveRunning(c)
	case wire.ControlLoad:
		c.Status = uint16(abi.ErrNotSupported)
	default:
		c.Status = uint16(abi.ErrInvalid)
	}
	return nil
}

func setName(c *wire.Control, name string) {
	c.Name = [abi.NameSize]byte{}
	copy(c.Name[:abi.NameSize-1], name)
}

func (s *Device) serveOpen(r *wire.Control) *channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cur.channels[uint32(r.A)]
	switch {
	case r.A == abi.TargetControl || r.A >= uint64(s.shape.Channels) || c == nil:
		r.Status = uint16(abi.ErrNoTarget)
		return nil
	case c.open:
		r.Status = uint16(abi.ErrBusy)
		return nil
	case c.proc == nil:
		r.Status = uint16(abi.ErrNoTarget)
		return nil
	}
	s.cur.gen++
	c.open, c.live, c.closed, c.ended, c.gen = true, false, 0, 0, s.cur.gen
	r.A, r.B, r.C = c.next[abi.H2D], c.next[abi.D2H], c.gen
	return c
}

func (s *Device) serveStart(r *wire.Control) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _, _ := bytes.Cut(r.Name[:], []byte{0})
	code, ok := programs[string(name)]
	switch {
	case !ok:
		r.Status = uint16(abi.ErrNoProgram)
		return
	case r.B == 0 || r.B > uint64(s.shape.Channels):
		r.Status = uint16(abi.ErrInvalid)
		return
	case len(s.cur.procs) >= s.shape.Contexts:
		r.Status = uint16(abi.ErrNoMemory)
		return
	}
	first, status := s.placeLocked(r.A, r.B)
	if status != abi.OK {
		r.Status = uint16(status)
		return
	}
	ports := make([]*channel, r.B)
	for i := range ports {
		ports[i] = s.newChannelLocked(uint32(first) + uint32(i))
	}
	p := s.startLocked(code, ports, r.C)
	r.A, r.B = p.id, first
}

// placeLocked finds n free targets, at first if it is not zero. Must hold mu.
func (s *Device) placeLocked(first, n uint64) (uint64, abi.Status) {
	free := func(at uint64) bool {
		for id := at; id < at+n; id++ {
			if s.cur.channels[uint32(id)] != nil {
				return false
			}
		}
		return true
	}
	if first != 0 {
		if first < abi.TargetFirst || first+n > uint64(s.shape.Channels) {
			return 0, abi.ErrInvalid
		}
		if !free(first) {
			return 0, abi.ErrBusy
		}
		return first, abi.OK
	}
	for at := uint64(abi.TargetFirst); at+n <= uint64(s.shape.Channels); at++ {
		if free(at) {
			return at, abi.OK
		}
	}
	return 0, abi.ErrNoMemory
}

// serveStop does not wait for the process, which may have offers to take back: the host
// asks again.
func (s *Device) serveStop(r *wire.Control) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.cur.procs[r.A]
	if p == nil || p.ports[0].id < abi.TargetFirst { // a service
		r.Status = uint16(abi.ErrInvalid)
		return
	}
	p.stopLocked(abi.ErrStopped)
	r.Status = uint16(abi.ErrBusy)
}

func (s *Device) serveRunning(r *wire.Control) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.B = 0
	if s.cur.procs[r.A] != nil {
		r.B = 1
	}
}

func programNames() []string {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

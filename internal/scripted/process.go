package scripted

import (
	"sync"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// process is a running program of a scripted device. Ports run on goroutines of their
// own; the calls below block only the caller.
type process struct {
	s        *Device
	l        *epoch
	id       uint64
	ports    []*channel
	argument uint64
	stopped  abi.Status // why, once told to stop; guarded by s.mu
	memMu    sync.Mutex
	maps     [][]byte
}

// program is the code of a process; it returns when a call says so.
type program func(p *process)

// startLocked runs a program on channels that exist. Must hold mu.
func (s *Device) startLocked(code program, ports []*channel, argument uint64) *process {
	l := s.cur
	l.nextProc++
	p := &process{s: s, l: l, id: uint64(s.epochID-1)<<40 + l.nextProc, ports: ports, argument: argument}
	for i, c := range ports {
		c.proc, c.port = p, i
	}
	l.procs[p.id] = p
	l.done.Go(func() {
		code(p)
		p.exit()
	})
	return p
}

// exit gives the process's targets back.
func (p *process) exit() {
	for _, m := range p.maps {
		unmap(m)
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, c := range p.ports {
		p.s.endHalvesLocked(c, 3, p.stopped)
		c.proc = nil
		if !c.open {
			delete(p.l.channels, c.id)
		}
	}
	delete(p.l.procs, p.id)
}

// endHalvesLocked closes halves of a channel for the device. Must hold mu.
func (s *Device) endHalvesLocked(c *channel, halves uint32, why abi.Status) {
	if c.in != nil && halves&wire.ParkH2D != 0 {
		s.failInLocked(c, abi.ErrClosed, c.in.size)
	}
	if c.open && halves&^c.ended != 0 {
		s.sendCloseLocked(c, halves&^c.ended, why)
	}
	c.ended |= halves
}

// stopLocked ends every blocked call of the process. Must hold s.mu.
func (p *process) stopLocked(why abi.Status) {
	if p.stopped != abi.OK && why != abi.ErrReset {
		return
	}
	p.stopped = why
	for _, c := range p.ports {
		if why == abi.ErrReset {
			p.s.endWriteLocked(c, why) // nobody answers any more
		} else {
			p.s.retreatLocked(c, why)
		}
		p.s.endReadLocked(c, result{status: why})
	}
}

// retreatLocked ends a channel's transfer to the device, and withdraws an offer to the host. A
// transfer that the host has begun to take continues: the host decides its end. Must hold mu.
func (s *Device) retreatLocked(c *channel, why abi.Status) {
	if c.in != nil && c.in.active {
		s.failInLocked(c, abi.ErrClosed, c.in.size-c.in.move.processed)
	}
	switch r := c.wr; {
	case r == nil || r.began:
	case !r.sent:
		s.endWriteLocked(c, why)
	default:
		r.stop = why
		s.noteToHostLocked(c, wire.TypeWithdraw, abi.D2H, r.id)
	}
}

// alloc returns device memory until the process ends; nil if there is no room.
func (p *process) alloc(size uint64) []byte {
	if size == 0 || size > p.s.shape.EMEM {
		return nil
	}
	p.memMu.Lock()
	defer p.memMu.Unlock()
	m, err := mapMemory(size)
	if err != nil {
		return nil
	}
	p.maps = append(p.maps, m)
	return m
}

// free gives memory of alloc back early.
func (p *process) free(m []byte) {
	p.memMu.Lock()
	defer p.memMu.Unlock()
	for i := range p.maps {
		if len(m) > 0 && &p.maps[i][0] == &m[0] {
			unmap(p.maps[i])
			p.maps = append(p.maps[:i], p.maps[i+1:]...)
			return
		}
	}
}

// beginLocked makes a request of the process. Must hold s.mu.
func (p *process) beginLocked(port int, v verb, mem []byte) *request {
	r := &request{verb: v, mem: mem, alloc: p.alloc, result: make(chan result, 1)}
	c := p.ports[port]
	switch {
	case p.stopped != abi.OK:
		r.end(result{status: p.stopped})
	case v <= look:
		c.rd = r
		p.s.matchLocked(c)
	case c.seen != 0 && (c.seen != c.gen || !c.open): // an answer to a subscriber that is gone
		c.seen = 0
		r.end(result{status: abi.ErrClosed})
	default:
		c.wr = r
		p.s.offerOutLocked(c)
	}
	return r
}

// call blocks the process for one request.
func (p *process) call(port int, v verb, mem []byte) result {
	p.s.mu.Lock()
	r := p.beginLocked(port, v, mem)
	p.s.mu.Unlock()
	res := <-r.result
	if v == readAny && res.status != abi.OK {
		p.free(r.mem)
	}
	return res
}

func (p *process) read(port int) ([]byte, abi.Status) {
	r := p.call(port, readMessage, nil)
	return r.msg, r.status
}

func (p *process) readInd(port int, mem []byte) abi.Status {
	return p.call(port, readTransfer, mem).status
}

func (p *process) look(port int) (direct bool, size uint64, st abi.Status) {
	r := p.call(port, look, nil)
	return r.direct, r.size, r.status
}

func (p *process) write(port int, msg []byte) abi.Status {
	return p.call(port, writeMessage, msg).status
}

func (p *process) writeInd(port int, mem []byte) abi.Status {
	return p.call(port, writeTransfer, mem).status
}

// refuse waits for an offer bigger than device memory and refuses it.
func (p *process) refuse(port int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if c := p.ports[port]; c.in != nil && !c.in.active {
		p.s.failInLocked(c, abi.ErrNoMemory, c.in.size)
	}
}

// over reports whether a status means that the process should return.
func (p *process) over() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.stopped != abi.OK
}

// each runs code for every port until all returned.
func (p *process) each(code func(port int)) {
	var wg sync.WaitGroup
	for i := range p.ports {
		wg.Go(func() { code(i) })
	}
	wg.Wait()
}

// park waits until the process is told to stop.
func (p *process) park() {
	r := &request{verb: look, result: make(chan result, 1)}
	p.s.mu.Lock()
	if p.stopped != abi.OK {
		p.s.mu.Unlock()
		return
	}
	stop := &channel{rd: r}
	p.ports = append(p.ports, stop)
	p.s.mu.Unlock()
	<-r.result
	p.s.mu.Lock()
	p.ports = p.ports[:len(p.ports)-1]
	p.s.mu.Unlock()
}

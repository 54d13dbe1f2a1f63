package vhostuser

import (
	"os"
	"sync"
	"sync/atomic"
)

// kick serves a queue that has something new. Must hold mu.
func (c *Conn) kick(index int) error {
	switch {
	case !c.queues[index].enabled:
		return nil
	case index == commandQueue:
		return c.command()
	}
	return c.interrupt()
}

// command makes the accesses that wait in the command queue. For an answer the
// driver looks itself, and finds all that went before it: a call is needed only
// when there was none for long, lest the queue is full.
func (c *Conn) command() error {
	q := &c.queues[commandQueue]
	if err := q.look(); err != nil {
		return err
	}
	for q.waiting > 0 {
		ch, err := q.next(c.memory)
		if err != nil {
			return err
		}
		o, err := parseOperation(ch)
		if err != nil {
			return err
		}
		answer, err := c.carryOut(o)
		if err != nil {
			return err
		}
		q.give(ch, answer)
		if q.silent++; ch.room > 0 {
			q.silent = 0
		}
	}
	if q.silent >= q.size/4 {
		q.silent = 0
		c.call(commandQueue)
	}
	return c.interrupt() // a mask may be off now
}

// interrupt sends what fired, as long as the driver has room. Must hold mu.
func (c *Conn) interrupt() error {
	q := &c.queues[interruptQueue]
	vector, ok := c.msix.due()
	if !q.enabled || !ok {
		return nil
	}
	if err := q.look(); err != nil {
		return err
	}
	sent := false
	for ; ok && q.waiting > 0; vector, ok = c.msix.due() { // the driver kicks when there is room
		ch, err := q.next(c.memory)
		if err != nil {
			return err
		}
		b := c.msix.message(vector)
		if ch.room < len(b) {
			return malformed("room for an interrupt of %d bytes", ch.room)
		}
		q.give(ch, b)
		sent = true
	}
	if sent {
		c.call(interruptQueue)
	}
	return nil
}

// call tells the driver to look at a queue, if it wants to know. Must hold mu.
func (c *Conn) call(index int) {
	if !c.queues[index].quiet {
		c.caller.ask(index)
	}
}

// caller sends calls from a goroutine of its own: the client may be waiting for
// us and not read them. Calls of a queue that wait are one.
type caller struct {
	asked atomic.Uint32 // a bit for each queue
	bell  chan struct{} // of one place: somebody asked
	quit  chan struct{}

	mu      sync.Mutex // guards what follows
	channel *os.File
	serving sync.WaitGroup
}

func newCaller() *caller {
	return &caller{bell: make(chan struct{}, 1), quit: make(chan struct{})}
}

// open starts to send on a channel: once.
func (s *caller) open(channel *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel != nil {
		channel.Close()
		return malformed("a second channel")
	}
	s.channel = channel
	s.serving.Go(func() { s.serve(channel) })
	return nil
}

// ready reports whether there is a channel.
func (s *caller) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel != nil
}

// ask sends a call soon.
func (s *caller) ask(queue int) {
	s.asked.Or(1 << queue)
	select {
	case s.bell <- struct{}{}:
	default: // it rings already
	}
}

func (s *caller) serve(channel *os.File) {
	for {
		select {
		case <-s.bell:
		case <-s.quit:
			return
		}
		asked := s.asked.Swap(0)
		for q := range numQueues {
			if asked&(1<<q) == 0 {
				continue
			}
			b := Header{Request: CallVring, Flags: version, Size: vringStateSize}.Append(nil)
			b = order.AppendUint32(b, uint32(q))
			if _, err := channel.Write(order.AppendUint32(b, 0)); err != nil {
				return // the client has gone, or goes
			}
		}
	}
}

// close ends the goroutine and closes the channel.
func (s *caller) close() {
	close(s.quit)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel != nil {
		s.channel.Close()
	}
	s.serving.Wait()
}

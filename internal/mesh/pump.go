package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// pumpBytes are written to a connection at once: the link has the room of those before
// while they are.
const pumpBytes = 128 << 10

// roomAgain is when to look for room though nobody said that there is.
const roomAgain = time.Millisecond

// wordBytes is what a link carries at once; a connection carries whole words.
const wordBytes = 16

// A connection has a flow control of its own, and its round trips are those of threads
// that have to be woken: the shortest of them says nothing of what may be under way, a
// packet whose ack is late was not lost, and each credit costs some wake-ups: a stream's are
// sent with each quarter of a FIFO, before their time.
const (
	connectedWords  = 16384 // of FIFOs, buffer and window
	connectedRetry  = 20 * time.Millisecond
	connectedCredit = time.Millisecond
)

// A connection without words ends, though its medium is well: each end of a link shows itself
// with each heartbeat, so nothing arrives any more, or nobody is there.
const (
	silencesMost = 4               // that would lose a link
	silentLeast  = 3 * time.Second // and no less
)

// errSilent means that a connection had no words for too long.
var errSilent = errors.New("the neighbour said nothing")

// errReplaced means that a connection gave way, as it had no words and another one was made.
var errReplaced = errors.New("the neighbour came by another connection")

const (
	// defaultSilence is the firmware's: what loses a link.
	defaultSilence = 700 * time.Millisecond
	// maxLook is when to look again whether a connection has words.
	maxLook = 100 * time.Millisecond
)

// OverConnections fills zero fields of a configuration for a process that is one node,
// whose links lead to other processes. Its thread sleeps whenever it has nothing to do: who
// moves words for it steps the node meanwhile.
func OverConnections(c Config) Config {
	c.Threads = cmp.Or(c.Threads, 1)
	c.Depth, c.Buffer = cmp.Or(c.Depth, connectedWords), cmp.Or(c.Buffer, connectedWords)
	c.Window, c.WireWords = cmp.Or(c.Window, connectedWords), cmp.Or(c.WireWords, 2*connectedWords)
	c.Retry, c.CreditIdle = cmp.Or(c.Retry, connectedRetry), cmp.Or(c.CreditIdle, connectedCredit)
	return c
}

// Connect carries the words of a link to a node that is elsewhere over a connection,
// until that ends, ctx does or the mesh is closed, and closes it. It returns why; nil
// if the other end closed it. ErrBusy: the link has a connection. Both ends say hello before:
// ErrTorus, ErrFlow, ErrVersion, or another ErrPeer, at both of them, if they do not fit.
//
// The connection must be in order and private: the process at its other end is the neighbour. One
// that leaves the machine is made by [Mesh.Dial] or [Mesh.Serve].
func (m *Mesh) Connect(ctx context.Context, node, link int, conn net.Conn) error {
	var refused error
	err := m.withLink(node, link, func(*firmware.Mesh) { refused = m.unclaimed(node, link) })
	if err = errors.Join(err, refused); err == nil {
		err = m.meet(ctx, conn, node, link)
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	return m.carry(ctx, node, link, conn, bridge.MediumConnection)
}

// unclaimed returns why a link takes no connection; nil: it does.
func (m *Mesh) unclaimed(node, link int) error {
	m.pumping.Lock()
	defer m.pumping.Unlock()
	return m.unclaimedLocked(node, link)
}

// unclaimedLocked is unclaimed. Must hold pumping.
func (m *Mesh) unclaimedLocked(node, link int) error {
	if !m.here(node) || m.here(m.Neighbour(node, link)) {
		return fmt.Errorf("link %d of node %d: not just one of its nodes is of this process: %w", link, node, ErrUnknown)
	}
	if m.pumped[[2]int{node, link}] != nil || m.isClosed() {
		return fmt.Errorf("link %d of node %d has a connection: %w", link, node, ErrBusy)
	}
	return nil
}

// carry is Connect for anything that reads and writes words.
func (m *Mesh) carry(ctx context.Context, node, link int, conn io.ReadWriteCloser, medium bridge.FabricMedium) error {
	p, err := m.newPump(node, link, conn, medium)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer m.endPump(p)
	var sides sync.WaitGroup
	var errs [3]error
	sides.Go(func() { errs[0] = p.send(); p.end(nil) })
	sides.Go(func() { errs[1] = p.receive(); p.end(nil) })
	sides.Go(func() { errs[2] = p.listen(m.silent); p.end(nil) })
	p.f.Join(node, link, true)
	select {
	case <-ctx.Done():
	case <-m.closed:
	case <-p.stopped:
	}
	p.end(nil)
	p.f.Join(node, link, false)
	closing := errors.Join(conn.Close(), p.event.Close())
	sides.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.isClosed():
		return ErrClosed
	}
	return errors.Join(p.why, ignoreEnd(errs[0]), ignoreEnd(errs[1]), errs[2], ignoreEnd(closing))
}

// ignoreEnd leaves out what a connection that was closed says.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (m *Mesh) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

// pump is a link with a connection.
type pump struct {
	f          *firmware.Mesh
	node, link int
	conn       io.ReadWriteCloser
	medium     bridge.FabricMedium
	event      *os.File      // readable when there are words to send, or room
	room       chan struct{} // holds one token: there may be room
	reads      atomic.Uint64 // that began and that ended: odd while one waits for words
	patience   time.Duration // without words until it gives way to another one
	heard      atomic.Int64  // when the last one ended, by the clock of the machine
	stopped    chan struct{} // closed when it is to end
	stop       sync.Once
	why        error         // set before stopped is closed; nil: its sides say why
	gone       chan struct{} // closed when the link may have another
}

// end has a pump end, for a reason unless its sides have one.
func (p *pump) end(why error) {
	p.stop.Do(func() {
		p.why = why
		close(p.stopped)
	})
}

// newPump makes the only pump of a link.
func (m *Mesh) newPump(node, link int, conn io.ReadWriteCloser, medium bridge.FabricMedium) (*pump, error) {
	p := &pump{
		node: node, link: link, conn: conn, medium: medium, room: make(chan struct{}, 1),
		patience: cmp.Or(m.config.Silence, defaultSilence), stopped: make(chan struct{}), gone: make(chan struct{}),
	}
	p.heard.Store(time.Now().UnixNano())
	var failed error
	err := m.withLink(node, link, func(f *firmware.Mesh) {
		p.f = f
		failed = m.claim(p)
	})
	return p, errors.Join(err, failed)
}

// claim takes the link for a pump. Must hold mu, and the mesh is open.
func (m *Mesh) claim(p *pump) error {
	m.pumping.Lock()
	defer m.pumping.Unlock()
	if err := m.unclaimedLocked(p.node, p.link); err != nil {
		return err
	}
	event, err := openEvent(p.f.Event(p.node, p.link))
	if err != nil {
		return fmt.Errorf("link %d of node %d: %w", p.link, p.node, err)
	}
	p.event = event
	m.pumped[[2]int{p.node, p.link}] = p
	m.pumps.Add(1)
	return nil
}

// connection returns that of a link, nil if it has none.
func (m *Mesh) connection(node, link int) *pump {
	m.pumping.Lock()
	defer m.pumping.Unlock()
	return m.pumped[[2]int{node, link}]
}

// connected reports whether a link has a connection.
func (m *Mesh) connected(node, link int) bool { return m.connection(node, link) != nil }

// taken reports whether a link has a connection that does not give way to another one: one that had
// no words for as long as loses a link ends, as a process that was killed does not always hang up,
// and connects again. Words that arrived while this process had no processor are read first.
func (m *Mesh) taken(ctx context.Context, node, link int) bool {
	p := m.connection(node, link)
	if p == nil {
		return false
	}
	look := time.NewTicker(min(p.patience/8, maxLook))
	defer look.Stop()
	before := p.reads.Load()
	for quiet := false; !quiet; quiet = time.Since(time.Unix(0, p.heard.Load())) >= p.patience {
		select {
		case <-look.C:
		case <-p.gone:
			return false
		case <-ctx.Done():
			return true
		}
		if before%2 == 0 || p.reads.Load() != before {
			return true
		}
	}
	p.end(errReplaced)
	select {
	case <-p.gone:
		return false
	case <-ctx.Done():
		return true
	}
}

func (m *Mesh) endPump(p *pump) {
	m.pumping.Lock()
	delete(m.pumped, [2]int{p.node, p.link})
	m.pumping.Unlock()
	close(p.gone)
	m.pumps.Done()
}

// send moves words from the link to the connection.
func (p *pump) send() error {
	var wake [8]byte
	for {
		if words := p.f.Outgoing(p.node, p.link); len(words) > 0 {
			n, err := p.conn.Write(words[:min(len(words), pumpBytes)])
			if err != nil {
				return err
			}
			p.f.Sent(p.node, p.link, n)
			continue
		}
		if _, err := p.event.Read(wake[:]); err != nil {
			return err
		}
		select {
		case p.room <- struct{}{}:
		default:
		}
	}
}

// receive moves words from the connection to the link.
func (p *pump) receive() error {
	var begun [wordBytes]byte // of a word that is not whole
	held := 0
	for {
		place := p.f.Incoming(p.node, p.link)
		if len(place) == 0 {
			select {
			case <-p.room:
			case <-time.After(roomAgain): // who would say so may wait for the connection
			case <-p.stopped:
				return nil
			}
			continue
		}
		copy(place, begun[:held])
		p.reads.Add(1)
		n, err := p.conn.Read(place[held:])
		p.heard.Store(time.Now().UnixNano())
		p.reads.Add(1)
		whole := (held + n) / wordBytes * wordBytes
		held = copy(begun[:], place[whole:held+n])
		p.f.Came(p.node, p.link, whole)
		if err != nil {
			return err
		}
	}
}

// listen returns when one read waited for so long. Time in which this process had no processor
// counts once.
func (p *pump) listen(silent time.Duration) error {
	const looks = 4
	look := time.NewTicker(silent / looks)
	defer look.Stop()
	before := uint64(0)
	for quiet := 0; quiet < looks; {
		select {
		case <-look.C:
		case <-p.stopped:
			return nil
		}
		now := p.reads.Load()
		if now == before && now%2 == 1 {
			quiet++
		} else {
			quiet = 0
		}
		before = now
	}
	return fmt.Errorf("%w for %v", errSilent, silent)
}

// medium is what carries the words of a link; unknown while a link to another process has no
// connection, and for those of other processes.
func (m *Mesh) medium(node, link int) bridge.FabricMedium {
	if !m.here(node) || m.Neighbour(node, link) == node {
		return bridge.MediumUnknown
	}
	if m.here(m.Neighbour(node, link)) {
		return bridge.MediumMemory
	}
	m.pumping.Lock()
	defer m.pumping.Unlock()
	if p := m.pumped[[2]int{node, link}]; p != nil {
		return p.medium
	}
	return bridge.MediumUnknown
}

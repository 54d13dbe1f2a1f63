package group

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// Relayed is the Transport between goroutines of this process whose frames travel:
// those for a member pass a relay, which gives back what was written to it,
// in order. A relay is at another place, such as a node of a fabric; when it fails,
// its members have ended.
type Relayed struct {
	mesh    *Mesh
	relays  []*relay
	running sync.WaitGroup
}

// NewRelayed makes a Relayed for so many members. The relay of rank r is the r-th,
// counted around; all are closed by Close.
func NewRelayed(size int, relays []io.ReadWriteCloser) *Relayed {
	t := &Relayed{mesh: NewMesh(size)}
	for at, through := range relays {
		r := &relay{transport: t, at: at, through: through, more: make(chan struct{}, 1)} // 1: news is not lost
		r.moved.L = &r.mu
		t.relays = append(t.relays, r)
		t.running.Go(r.write)
		t.running.Go(r.read)
	}
	return t
}

// connect takes a rank.
func (t *Relayed) connect(rank, size int) (memberLink, error) {
	if _, err := t.mesh.connect(rank, size); err != nil {
		return nil, err
	}
	return &relayedLink{&t.mesh.members[rank], t}, nil
}

// Close ends the relays. Members that have not left are lost.
func (t *Relayed) Close() error {
	var errs []error
	for _, r := range t.relays {
		r.fail(ErrClosed)
		errs = append(errs, r.through.Close())
	}
	t.running.Wait()
	return errors.Join(errs...)
}

// relayed is a frame's header on its way: frameHeader, from, to, and the size.
const relayedHeader = 16 + 2 + 2 + 4

// relayMost is how many bytes a frame may have: its size travels in 32 bits.
const relayMost = math.MaxUint32

// relayRoom is how many bytes wait for a relay, but for one frame.
const relayRoom = 1 << 20

// relay is one way through which frames travel.
type relay struct {
	transport *Relayed
	at        int
	through   io.ReadWriteCloser
	more      chan struct{}

	mu        sync.Mutex
	moved     sync.Cond // done or failed has changed
	queue     []byte
	put, done uint64 // frames written, and handed over
	waiting   []*meshLink
	failed    error
}

// send queues a frame; false if there is no room now.
func (r *relay) send(from *meshLink, to int, h frameHeader, data []byte) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failed != nil || r.transport.mesh.members[to].closed.Load():
		return false, ErrGone
	case uint64(len(data)) > relayMost:
		return false, fmt.Errorf("%w: a frame of %d bytes, at most %d", ErrTooLarge, len(data), uint64(relayMost))
	case len(r.queue) > 0 && len(r.queue)+len(data) > relayRoom:
		r.waiting = append(r.waiting, from)
		return false, nil
	}
	b := binary.LittleEndian.AppendUint64(r.queue, h.Step)
	b = binary.LittleEndian.AppendUint32(b, h.Epoch)
	b = binary.LittleEndian.AppendUint16(b, h.Tag)
	b = append(b, byte(h.Op), byte(h.Flags))
	b = binary.LittleEndian.AppendUint16(b, uint16(from.rank))
	b = binary.LittleEndian.AppendUint16(b, uint16(to))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	r.queue = append(b, data...)
	r.put++
	r.wake()
	return true, nil
}

// wake has write look again.
func (r *relay) wake() {
	select {
	case r.more <- struct{}{}:
	default: // it will look
	}
}

// write sends what is queued, all that there is at once.
func (r *relay) write() {
	var batch []byte
	for range r.more {
		r.mu.Lock()
		batch, r.queue = r.queue, batch[:0]
		for _, l := range r.waiting {
			l.Wake()
		}
		clear(r.waiting)
		r.waiting = r.waiting[:0]
		ended := r.failed != nil
		r.mu.Unlock()
		if ended {
			return
		}
		if len(batch) == 0 {
			continue
		}
		if _, err := r.through.Write(batch); err != nil {
			r.fail(err)
			return
		}
	}
}

// read hands over the frames that the relay returns.
func (r *relay) read() {
	in := bufio.NewReaderSize(r.through, 64<<10)
	var head [relayedHeader]byte
	var data []byte
	for {
		_, err := io.ReadFull(in, head[:])
		if err == nil {
			size := int(binary.LittleEndian.Uint32(head[20:]))
			if size > cap(data) {
				data = make([]byte, max(size, 2*cap(data)))
			}
			data = data[:size]
			_, err = io.ReadFull(in, data)
		}
		if err == nil {
			err = r.handOver(head[:], data)
		}
		if err != nil {
			r.fail(err)
			return
		}
	}
}

func (r *relay) handOver(head, data []byte) error {
	h := frameHeader{
		Step: binary.LittleEndian.Uint64(head), Epoch: binary.LittleEndian.Uint32(head[8:]),
		Tag: binary.LittleEndian.Uint16(head[12:]), Op: operation(head[14]), Flags: frameFlags(head[15]),
	}
	from, to := int(binary.LittleEndian.Uint16(head[16:])), int(binary.LittleEndian.Uint16(head[18:]))
	all := r.transport.mesh.members
	if from >= len(all) || to >= len(all) || to%len(r.transport.relays) != r.at {
		return fmt.Errorf("a frame from rank %d to rank %d came through relay %d", from, to, r.at)
	}
	_, _ = all[from].TrySend(to, h, data) // who has left needs no frame
	r.mu.Lock()
	r.done++
	r.moved.Broadcast()
	r.mu.Unlock()
	return nil
}

// fail ends the relay: members whose frames pass it are lost.
func (r *relay) fail(err error) {
	r.mu.Lock()
	was := r.failed != nil
	if !was {
		r.failed = err
	}
	r.moved.Broadcast()
	r.wake()
	r.mu.Unlock()
	if was {
		return
	}
	for rank := r.at; rank < len(r.transport.mesh.members); rank += len(r.transport.relays) {
		l := &r.transport.mesh.members[rank]
		_, _ = l.put(meshFrame{from: int32(rank), size: inRest}, nil, meshRest{end: ErrGone}) // who has left needs no word
		l.leave(ErrGone)
	}
}

// settle returns when what was sent so far has been handed over, or never will be.
func (r *relay) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for put := r.put; r.done < put && r.failed == nil; {
		r.moved.Wait()
	}
}

// relayedLink receives as a member of a Mesh, and sends through relays.
type relayedLink struct {
	*meshLink
	transport *Relayed
}

func (l *relayedLink) TrySend(to int, h frameHeader, data []byte) (bool, error) {
	r := l.transport.relays[to%len(l.transport.relays)]
	return r.send(l.meshLink, to, h, data)
}

// Close leaves once what this member has sent is there.
func (l *relayedLink) Close() error {
	for _, r := range l.transport.relays {
		r.settle()
	}
	return l.meshLink.Close()
}

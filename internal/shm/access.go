//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// errNoAnswer is what becomes of puts and gets that a device process does not end.
var errNoAnswer = fmt.Errorf("%w: puts and gets are not answered", bridge.ErrDeviceLost)

// access is how this process puts and gets over one link.
type access struct {
	conn   *net.UnixConn
	places chan struct{} // one for each request that is under way
	read   chan struct{} // closed when nothing is read any more
	failed chan struct{} // closed when there is no answer any more

	mu     sync.Mutex // guards what follows
	under  map[uint32]*request
	last   uint32 // number that was given
	broken error  // why there is no answer any more
}

// request is a part of a put or a get that is under way.
type request struct {
	number uint32
	data   []byte        // to read
	ended  chan struct{} // closed when the rest is there
	err    error
}

// accesses returns how to put and get over the link.
func (l *link) accesses() (*access, error) {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.access != nil {
		return l.access, l.why()
	}
	_, files, err := l.request(&shmwire.Message{Kind: shmwire.Accesses}, 1)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(files[0]), "nfcomms-access")
	conn, err := net.FileConn(file)
	err = errors.Join(err, file.Close())
	socket, ok := conn.(*net.UnixConn)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: socket for puts and gets: %w", bridge.ErrDeviceLost, errors.Join(err, shmwire.ErrForeign))
	}
	l.access = newAccess(socket)
	return l.access, nil
}

func newAccess(conn *net.UnixConn) *access {
	a := &access{
		conn: conn, places: make(chan struct{}, shmwire.AccessMost), read: make(chan struct{}), failed: make(chan struct{}),
		under: make(map[uint32]*request),
	}
	_ = conn.SetWriteBuffer(shmwire.AccessBuffer) // with less, requests take longer
	go a.serve()
	return a
}

// end ends what is under way, and returns when its memory is not touched any more.
func (a *access) end() {
	_ = a.conn.Close()
	<-a.read
}

// fail ends what is under way and what comes with an error.
func (a *access) fail(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken != nil {
		return
	}
	a.broken = why
	close(a.failed)
	for _, r := range a.under {
		r.err = why
		close(r.ended)
	}
	clear(a.under)
	_ = a.conn.Close()
}

// serve ends requests as their answers come.
func (a *access) serve() {
	defer close(a.read)
	b := make([]byte, shmwire.AccessSize+shmwire.AccessData+1)
	for {
		n, err := a.conn.Read(b)
		if err == nil {
			err = a.answered(b[:n])
		}
		if err != nil {
			a.fail(fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err))
			return
		}
	}
}

// answered ends the request that an answer is for.
func (a *access) answered(b []byte) error {
	m, data, err := shmwire.ParseAnswer(b)
	if err != nil {
		return err
	}
	a.mu.Lock()
	r := a.under[m.Number]
	delete(a.under, m.Number)
	a.mu.Unlock()
	if r == nil {
		return shmwire.ErrForeign
	}
	if m.Status == 0 && len(data) != len(r.data) {
		err = shmwire.ErrForeign
	}
	r.err = errors.Join(m.Err(), err)
	if r.err == nil {
		r.err = copied(r.data, data)
	}
	close(r.ended)
	<-a.places
	return err
}

// copied copies what a get has read.
func copied(to, from []byte) error {
	if _, err := fault.Copy(to, from); err != nil {
		return fmt.Errorf("%w: %w", bridge.ErrDMA, err)
	}
	return nil
}

// begin sends a request once there is a place for it.
func (a *access) begin(ctx context.Context, m shmwire.Access, data []byte) (*request, error) {
	select {
	case a.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.failed:
		return nil, a.broken
	}
	r := &request{ended: make(chan struct{})}
	a.mu.Lock()
	if a.broken != nil {
		defer a.mu.Unlock()
		return nil, a.broken
	}
	for a.last++; a.under[a.last] != nil; a.last++ {
	}
	r.number, a.under[a.last] = a.last, r
	if m.Kind == shmwire.Get {
		r.data = data
	}
	a.mu.Unlock()
	m.Number, m.Size = r.number, uint32(len(data))
	message := net.Buffers{m.Encode()}
	if m.Kind == shmwire.Put {
		message = append(message, data)
	}
	if err := a.send(message); err != nil {
		a.forget(r)
		return nil, err
	}
	return r, nil
}

// forget takes back a request that was not sent.
func (a *access) forget(r *request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.under[r.number] == r { // else fail has ended it
		delete(a.under, r.number)
		<-a.places
	}
}

// send writes a message, whole or not at all. It returns an error for memory of the caller that
// cannot be reached; if the write fails otherwise, there are no answers any more.
func (a *access) send(message net.Buffers) error {
	_ = a.conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, err := message.WriteTo(a.conn)
	switch {
	case errors.Is(err, syscall.EFAULT):
		return fmt.Errorf("%w: %w", bridge.ErrDMA, err)
	case err != nil:
		a.fail(fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err))
	}
	return nil
}

// await returns how a request ended, which the end of ctx makes it do.
func (a *access) await(ctx context.Context, r *request) error {
	select {
	case <-r.ended:
		return r.err
	case <-ctx.Done():
	}
	withdraw := shmwire.Access{Kind: shmwire.Withdraw, Number: r.number}
	_ = a.send(net.Buffers{withdraw.Encode()}) // of memory that is there
	late := time.AfterFunc(answerTime, func() { a.fail(errNoAnswer) })
	defer late.Stop()
	<-r.ended
	if errors.Is(r.err, bridge.ErrWithdrawn) {
		return ctx.Err()
	}
	return r.err
}

// do puts or gets all of data, some parts at a time.
func (a *access) do(ctx context.Context, m shmwire.Access, data []byte) (err error) {
	var under []*request
	for more := true; more || len(under) > 0; {
		if more && len(under) < shmwire.AccessMost/2 { // others have places, too
			n := min(len(data), shmwire.AccessData)
			r, failed := a.begin(ctx, m, data[:n])
			if failed != nil {
				err, more = failed, false
				continue
			}
			under = append(under, r)
			m.Offset, data = m.Offset+uint64(n), data[n:]
			more = len(data) > 0
			continue
		}
		ended := a.await(ctx, under[0])
		under = under[1:]
		if err == nil {
			err = ended
		}
		more = more && err == nil
	}
	return err
}

// access puts or gets all of data by the process's node.
func (t *torus) access(ctx context.Context, kind shmwire.AccessKind, w bridge.FabricWindow, offset uint64, data []byte) error {
	err := ctx.Err()
	if err == nil && offset > math.MaxUint64-uint64(len(data)) {
		err = bridge.ErrRange
	}
	var a *access
	if err == nil {
		a, err = t.port.linked().accesses()
	}
	if err == nil {
		err = a.do(ctx, shmwire.Access{Kind: kind, Window: w, Offset: offset}, data)
	}
	if err == nil || err == ctx.Err() {
		return err
	}
	return fmt.Errorf("%d bytes at offset %d of window %x of node %v: %w", len(data), offset, w.Key, w.Node, err)
}

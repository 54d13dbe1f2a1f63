//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// errNoAnswer is what becomes of puts and gets that a device process does not end.
var errNoAnswer = fmt.Errorf("%w: puts and gets are not answered", bridge.ErrDeviceLost)

// access is how this process puts and gets over one link.
type access struct {
	conn   *net.UnixConn
	places chan struct{} // one for each request that is under way
	writes chan struct{} // room for one: who writes
	read   chan struct{} // closed when nothing is read any more
	failed chan struct{} // closed when there is no answer any more

	mu     sync.Mutex // guards what follows
	under  map[uint32]*request
	last   uint32     // number that was given
	past   []*request // that nobody waits for
	broken error      // why there is no answer any more
}

// request is a part of a put or a get that is under way.
type request struct {
	number uint32
	size   int           // to read
	ended  chan struct{} // closed when err is there
	err    error

	mu   sync.Mutex // guards what follows, and the bytes
	data []byte     // where they belong; nil: they are not wanted any more
}

// arrived copies what a get has read, if it is wanted.
func (r *request) arrived(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return copied(r.data, data)
}

// abandon has the bytes of a get touched no more.
func (r *request) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = nil
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

// accessesWithin is accesses, which continues behind the caller's back if ctx ends.
func (l *link) accessesWithin(ctx context.Context) (*access, error) {
	if a := l.opened(); a != nil {
		return a, l.why()
	}
	type result struct {
		a   *access
		err error
	}
	done := make(chan result, 1)
	go func() {
		a, err := l.accesses()
		done <- result{a, err}
	}()
	select {
	case r := <-done:
		return r.a, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// opened returns what accesses returned before; nil if that is still under way.
func (l *link) opened() *access {
	if !l.opening.TryLock() {
		return nil
	}
	defer l.opening.Unlock()
	return l.access
}

func newAccess(conn *net.UnixConn) *access {
	a := &access{
		conn: conn, places: make(chan struct{}, shmwire.AccessMost), writes: make(chan struct{}, 1), read: make(chan struct{}), failed: make(chan struct{}),
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
	if m.Status == 0 && len(data) != r.size {
		err = shmwire.ErrForeign
	}
	r.err = errors.Join(m.Err(), err)
	if r.err == nil {
		r.err = r.arrived(data)
	}
	<-a.places // before its call returns: the next one finds the place
	close(r.ended)
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
		r.data, r.size = data, len(data)
	}
	a.mu.Unlock()
	m.Number, m.Size = r.number, uint32(len(data))
	message := net.Buffers{m.Encode()}
	if m.Kind == shmwire.Put {
		message = append(message, data)
	}
	if err := a.send(ctx, message); err != nil {
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

// send writes a message, whole or not at all. It returns the error of ctx, or one for memory of the
// caller that cannot be reached; if the write fails otherwise, there are no answers any more.
func (a *access) send(ctx context.Context, message net.Buffers) error {
	select {
	case a.writes <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.writes }()
	_ = a.conn.SetWriteDeadline(time.Now().Add(answerTime))
	undo := fdpass.Interrupt(ctx, a.conn.SetWriteDeadline)
	_, err := message.WriteTo(a.conn)
	undo()
	if ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return ctx.Err()
	}
	switch {
	case errors.Is(err, syscall.EFAULT):
		return fmt.Errorf("%w: %w", bridge.ErrDMA, err)
	case err != nil:
		a.fail(fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err))
	}
	return nil
}

// await returns how a request ended, which the end of ctx makes it do. If the device process does not
// say so soon, the caller does not wait for that: all requests of a call have until the same time, which
// the first one sets.
func (a *access) await(ctx context.Context, r *request, until *time.Time) error {
	select {
	case <-r.ended:
		return r.err
	case <-ctx.Done():
	}
	go a.withdraw(r)
	if until.IsZero() {
		*until = time.Now().Add(lateTime)
	}
	late := time.NewTimer(time.Until(*until))
	defer late.Stop()
	select {
	case <-r.ended:
	case <-late.C:
		r.abandon()
		a.mu.Lock()
		a.past = append(a.past, r)
		a.mu.Unlock()
		return ctx.Err()
	}
	if errors.Is(r.err, bridge.ErrWithdrawn) {
		return ctx.Err()
	}
	return r.err
}

// withdraw has the device process end a request.
func (a *access) withdraw(r *request) {
	withdraw := shmwire.Access{Kind: shmwire.Withdraw, Number: r.number}
	_ = a.send(context.Background(), net.Buffers{withdraw.Encode()}) // of memory that is there
	late := time.NewTimer(answerTime)
	defer late.Stop()
	select {
	case <-r.ended:
	case <-late.C:
		a.fail(errNoAnswer)
	}
}

// settle waits until what other callers left has ended, as none of it arrives later than what
// follows.
func (a *access) settle(ctx context.Context) error {
	a.mu.Lock()
	past := a.past
	a.mu.Unlock()
	for _, r := range past {
		select {
		case <-r.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if len(past) > 0 {
		a.mu.Lock()
		a.past = slices.DeleteFunc(a.past, func(r *request) bool { return slices.Contains(past, r) })
		a.mu.Unlock()
	}
	return nil
}

// do puts or gets all of data, some parts at a time.
func (a *access) do(ctx context.Context, m shmwire.Access, data []byte) (err error) {
	var (
		under []*request
		until time.Time
	)
	if err := a.settle(ctx); err != nil {
		return err
	}
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
		ended := a.await(ctx, under[0], &until)
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
		a, err = t.port.linked().accessesWithin(ctx)
	}
	if err == nil {
		err = a.do(ctx, shmwire.Access{Kind: kind, Window: w, Offset: offset}, data)
	}
	if err == nil || err == ctx.Err() {
		return err
	}
	return fmt.Errorf("%d bytes at offset %d of window %x of node %v: %w", len(data), offset, w.Key, w.Node, err)
}

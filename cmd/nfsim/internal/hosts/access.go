//go:build cgo

package hosts

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// accesses are a client's puts and gets. They use a socket of their own, with their
// bytes: each takes as long as the fabric needs for it, and reaches no memory of the client.
type accesses struct {
	fabric Fabric
	conn   *net.UnixConn
	ctx    context.Context // of all of them
	cancel context.CancelFunc
	read   chan struct{} // closed when nothing is read any more
	places chan struct{} // one for each that is under way, until its answer is written
	under  sync.WaitGroup

	mu    sync.Mutex
	begun map[uint32]context.CancelFunc
}

// newAccesses serves a client's puts and gets until end; the client's end of the socket is the
// caller's.
func newAccesses(f Fabric) (*accesses, *os.File, error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "nfcomms-access"), os.NewFile(uintptr(ends[1]), "nfcomms-access")
	conn, err := net.FileConn(ours)
	err = errors.Join(err, ours.Close())
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	a := &accesses{
		fabric: f, conn: conn.(*net.UnixConn), read: make(chan struct{}), places: make(chan struct{}, shmwire.AccessMost),
		begun: make(map[uint32]context.CancelFunc),
	}
	_ = a.conn.SetWriteBuffer(shmwire.AccessBuffer) // with less, answers take longer
	a.ctx, a.cancel = context.WithCancel(context.Background())
	go a.serve()
	return a, theirs, nil
}

// end returns when none is under way any more, and none will be.
func (a *accesses) end() {
	a.cancel()
	_ = a.conn.Close()
	<-a.read
	a.under.Wait()
}

// serve begins what the client asks for until it sends an invalid request, or has closed.
func (a *accesses) serve() {
	defer close(a.read)
	defer a.conn.Close()
	defer a.cancel()
	b := make([]byte, shmwire.AccessSize+shmwire.AccessData+1)
	for {
		n, err := a.conn.Read(b)
		if err != nil || n == 0 {
			return
		}
		r, data, err := shmwire.ParseRequest(b[:n])
		if err != nil || !a.take(&r, data) {
			return
		}
	}
}

// take begins a put or a get once there is a place for it, or withdraws one; false: there is one
// of that number.
func (a *accesses) take(r *shmwire.Access, data []byte) bool {
	if r.Kind == shmwire.Withdraw {
		a.mu.Lock()
		defer a.mu.Unlock()
		if withdraw := a.begun[r.Number]; withdraw != nil {
			withdraw()
		}
		return true
	}
	a.places <- struct{}{}
	ctx, withdraw := context.WithCancel(a.ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun[r.Number] != nil {
		withdraw()
		<-a.places
		return false
	}
	a.begun[r.Number] = withdraw
	m, own := *r, make([]byte, r.Size)
	copy(own, data) // those of a put
	a.under.Go(func() { a.do(ctx, m, own) })
	return true
}

// do puts or gets, and answers.
func (a *accesses) do(ctx context.Context, r shmwire.Access, data []byte) {
	defer func() { <-a.places }()
	var err error
	if r.Kind == shmwire.Put {
		err = a.fabric.Put(ctx, r.Window, r.Offset, data)
	} else {
		err = a.fabric.Get(ctx, r.Window, r.Offset, data)
	}
	a.mu.Lock()
	a.begun[r.Number]()
	delete(a.begun, r.Number)
	a.mu.Unlock()
	if r.Status = accessStatus(err); r.Kind == shmwire.Put || r.Status != abi.OK {
		data = nil
	}
	_ = a.conn.SetWriteDeadline(time.Now().Add(answerTime))
	answer := net.Buffers{r.Encode(), data} // one message
	if _, err := answer.WriteTo(a.conn); err != nil {
		_ = a.conn.Close()
	}
}

// accessStatus is the status of the end of a put or a get.
func accessStatus(err error) abi.Status {
	switch {
	case errors.Is(err, context.Canceled):
		return abi.ErrWithdrawn
	case errors.Is(err, bridge.ErrClosed):
		return abi.ErrReset // the client's device is not closed: it ends
	}
	return statusOf(err)
}

// openAccesses gives the client a socket for puts and gets, which lasts as long as it.
func (h *host) openAccesses(m *shmwire.Message) (shmwire.Message, *os.File) {
	if h.accesses != nil {
		return shmwire.Refusal(m.Kind, abi.ErrBusy, shmwire.Bound{}), nil
	}
	a, theirs, err := newAccesses(h.server.fabric)
	if err != nil {
		return shmwire.Refusal(m.Kind, abi.ErrNoMemory, shmwire.Bound{}), nil
	}
	h.accesses = a
	return shmwire.Message{Kind: m.Kind}, theirs
}

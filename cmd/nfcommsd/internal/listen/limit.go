package listen

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// Limit bounds the open connections of a listener, and how many are taken in a
// second. One that comes when most are open is closed at once, and refused is
// told so: a client that is told can try again, one that is left waiting cannot
// tell. Those that come too fast wait in the kernel, where they cost nothing.
func Limit(l net.Listener, most, perSecond int, refused func()) net.Listener {
	return &limited{
		Listener: l, refused: refused,
		slots: make(chan struct{}, most),
		pace:  rate.NewLimiter(rate.Limit(perSecond), min(perSecond, most)),
	}
}

type limited struct {
	net.Listener
	refused func()
	slots   chan struct{} // one token for each open connection
	pace    *rate.Limiter
}

// Accept waits for a connection that is within the bound.
func (l *limited) Accept() (net.Conn, error) {
	for {
		time.Sleep(l.pace.Reserve().Delay())
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &bounded{Conn: conn, leave: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			conn.Close()
			l.refused()
		}
	}
}

// bounded is a connection that makes room when it closes.
type bounded struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (b *bounded) Close() error {
	defer b.leave()
	return b.Conn.Close()
}

// SyscallConn gives access to what lies below, for credentials that ask the
// kernel who connected.
func (b *bounded) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := b.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

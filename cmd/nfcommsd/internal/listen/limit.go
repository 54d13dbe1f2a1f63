package listen

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// Limit bounds the open connections of a listener: one that comes when most are
// open is closed at once, and refused is told so. Closing is cheap, and a client
// that is told at once can try again; one that is left waiting cannot tell.
func Limit(l net.Listener, most int, refused func()) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, most), refused: refused}
}

type limited struct {
	net.Listener
	slots   chan struct{} // one token for each open connection
	refused func()
}

// Accept waits for a connection that is within the bound.
func (l *limited) Accept() (net.Conn, error) {
	for {
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

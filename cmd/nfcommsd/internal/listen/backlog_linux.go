package listen

import (
	"net"
	"os"
	"syscall"
)

// backlog is how many connections the kernel keeps until they are taken. When there are more, a
// client that does not wait gets EAGAIN, and may try again.
const backlog = 512

// batch is how many connections fromBacklog takes while a Close of the listener waits.
const batch = 64

// takeRaw lets fromBacklog take the connections of a UNIX socket, and makes its backlog no longer than
// a caller may connect in a second: connections are taken in order of arrival, so that all of
// a flood that waits there is ahead of the next client.
func (l *limited) takeRaw(listener syscall.Conn) {
	raw, err := listener.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), backlog) })
	}
	if err == nil {
		l.raw = raw
	}
}

// fromBacklog returns the first connection in the backlog that is within the limits, nil if there is
// none. A connection that is refused costs a third of one of package net, which the runtime's poller
// would know: a flood leaves more for others.
func (l *limited) fromBacklog() (c *Conn) {
	if l.raw == nil {
		return nil
	}
	for empty := false; c == nil && !empty; {
		err := l.raw.Control(func(fd uintptr) {
			for n := 0; c == nil && !empty && n < batch; n++ {
				s, _, err := syscall.Accept4(int(fd), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
				if empty = err != nil; !empty { // Accept returns an error that stays
					c = l.door.admitSocket(socket(s))
				}
			}
		})
		empty = empty || err != nil
	}
	return c
}

// admitSocket makes a connection of a UNIX socket one of the door's, or closes it and returns nil.
// It has no net.Conn before it has its place, which nothing needs, as it does not wait.
func (d *door) admitSocket(s socket) *Conn {
	c := &Conn{door: d}
	if !d.enter(c, s) {
		_ = syscall.Close(int(s)) // nothing was written to it
		return nil
	}
	var err error
	if c.Conn, err = s.conn(); err != nil {
		d.mu.Lock()
		d.leaveLocked(c)
		d.mu.Unlock()
		d.limits.Refused(c.from, Unknown)
		return nil
	}
	return c
}

// socket is a connection that the runtime does not know. It is its own syscall.RawConn.
type socket int

func (s socket) SyscallConn() (syscall.RawConn, error) { return s, nil }

func (s socket) Control(f func(fd uintptr)) error {
	f(uintptr(s))
	return nil
}

func (socket) Read(func(uintptr) bool) error  { return syscall.EINVAL }
func (socket) Write(func(uintptr) bool) error { return syscall.EINVAL }

// conn makes it a net.Conn, and closes the socket after an error.
func (s socket) conn() (net.Conn, error) {
	f := os.NewFile(uintptr(s), "")
	defer f.Close()
	return net.FileConn(f)
}

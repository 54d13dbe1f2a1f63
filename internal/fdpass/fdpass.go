//go:build unix

package fdpass

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// Max is the most descriptors one message carries.
const Max = 16

var errTooMany = fmt.Errorf("more than %d descriptors: %w", Max, syscall.EINVAL)

// maxControl is the room for all descriptors the kernel passes at once, so that
// none is lost without a trace.
var maxControl = syscall.CmsgSpace(253 * 4)

// Set is the descriptors of one message. No child inherits them.
type Set struct {
	Files []int // closed by Close
	Bad   error // why the message cannot be handled: of its descriptors, at first
}

// Close closes the descriptors of a message.
func (s *Set) Close() {
	for _, f := range s.Files {
		_ = syscall.Close(f) // nothing was written to it
	}
	s.Files = nil
}

// collect keeps the descriptors of one control message, and closes those that
// are too many.
func (s *Set) collect(control []byte, flags int) {
	parsed, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		s.Bad = fmt.Errorf("control message: %w", syscall.EINVAL)
	}
	for i := range parsed {
		files, err := syscall.ParseUnixRights(&parsed[i])
		if err != nil {
			continue // credentials: nobody asked for them
		}
		s.Files = append(s.Files, files...)
	}
	if len(s.Files) > Max {
		s.Close()
		s.Bad = errTooMany
	}
	if flags&syscall.MSG_CTRUNC != 0 && s.Bad == nil {
		s.Bad = fmt.Errorf("descriptors were lost: %w", syscall.EMFILE)
	}
}

// Send writes all of b, and descriptors with its first byte. They stay the
// caller's. Calls do not run at the same time.
func Send(c *net.UnixConn, b []byte, files ...int) error {
	var control []byte
	if len(files) > 0 {
		control = syscall.UnixRights(files...)
	}
	n, _, err := c.WriteMsgUnix(b, control, nil)
	if err == nil && n < len(b) {
		_, err = c.Write(b[n:])
	}
	return err
}

// Receive reads once from a socket: a whole message where the socket keeps their
// limits.
func Receive(c *net.UnixConn, p []byte) (int, Set, error) {
	r := NewReader(c)
	var s Set
	n, err := r.read(p, &s)
	if err != nil {
		s.Close()
	}
	return n, s, err
}

// Reader reads a stream. Descriptors may be passed with any byte of the message
// they belong to.
type Reader struct {
	conn    *net.UnixConn
	control []byte
}

// NewReader returns a reader of a socket, which stays the caller's.
func NewReader(c *net.UnixConn) *Reader {
	return &Reader{conn: c, control: make([]byte, maxControl)}
}

// read reads once, and adds the received descriptors to a set.
func (r *Reader) read(p []byte, to *Set) (int, error) {
	n, control, flags, _, err := r.conn.ReadMsgUnix(p, r.control)
	to.collect(r.control[:max(0, control)], flags)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

// Fill reads all of p for a message and adds its descriptors
// to its set. io.EOF: the other side has ended before the first byte;
// io.ErrUnexpectedEOF: after it.
func (r *Reader) Fill(p []byte, to *Set) error {
	for got := 0; got < len(p); {
		n, err := r.read(p[got:], to)
		if err != nil && got > 0 {
			return CutOff(err)
		}
		if err != nil {
			return err
		}
		got += n
	}
	return nil
}

// CutOff is the end of a connection in the middle of a message.
func CutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

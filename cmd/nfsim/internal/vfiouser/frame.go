package vfiouser

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// maxControl is the room for all descriptors the kernel passes at once, so that
// none is lost without a trace.
var maxControl = syscall.CmsgSpace(253 * 4)

var errTooManyFiles = fmt.Errorf("more than %d descriptors: %w", MaxFiles, syscall.EINVAL)

// framer takes messages from a socket. Descriptors may come with any byte of
// the message they belong to.
type framer struct {
	conn    *net.UnixConn
	control []byte
}

func newFramer(c *net.UnixConn) *framer {
	return &framer{conn: c, control: make([]byte, maxControl)}
}

// next waits for a message. io.EOF: the client has gone between two messages.
// With another error there may be a message whose header cannot be right; it is
// to be refused, and nothing can follow.
func (f *framer) next() (*message, error) {
	m := &message{}
	head := make([]byte, HeaderSize)
	if err := f.fill(m, head); err != nil {
		m.close()
		return nil, err
	}
	h, err := ParseHeader(head)
	m.Header = h
	if err != nil {
		m.bad = fmt.Errorf("%w: %w", err, syscall.EINVAL)
		return m, err
	}
	m.payload = make([]byte, h.Size-HeaderSize)
	if err := f.fill(m, m.payload); err != nil {
		m.close()
		return nil, cutOff(err)
	}
	return m, nil
}

// fill reads all of p for a message and collects its descriptors.
func (f *framer) fill(m *message, p []byte) error {
	for got := 0; got < len(p); {
		n, nc, flags, _, err := f.conn.ReadMsgUnix(p[got:], f.control)
		if nc > 0 {
			m.collect(f.control[:nc])
		}
		if flags&syscall.MSG_CTRUNC != 0 && m.bad == nil {
			m.bad = fmt.Errorf("descriptors were lost: %w", syscall.EMFILE)
		}
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil && got > 0 {
			return cutOff(err)
		}
		if err != nil {
			return err
		}
		got += n
	}
	return nil
}

// cutOff is the end of a connection in the middle of a message.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// collect keeps the descriptors of one control message, and closes those that
// are too many.
func (m *message) collect(control []byte) {
	parsed, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		m.bad = fmt.Errorf("control message: %w", syscall.EINVAL)
	}
	for i := range parsed {
		files, err := syscall.ParseUnixRights(&parsed[i])
		if err != nil {
			continue // credentials: nobody asked for them
		}
		m.files = append(m.files, files...)
	}
	if len(m.files) > MaxFiles {
		m.close()
		m.bad = errTooManyFiles
	}
}

// close closes the descriptors that came with a message.
func (m *message) close() {
	for _, f := range m.files {
		_ = syscall.Close(f) // nothing was written to it
	}
	m.files = nil
}

package vfiouser

import (
	"fmt"
	"net"
	"syscall"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// framer takes messages from a socket.
type framer struct{ in *fdpass.Reader }

func newFramer(c *net.UnixConn) framer { return framer{fdpass.NewReader(c)} }

// next waits for a message. io.EOF: the client has closed between two messages.
// With another error there may be a message whose header cannot be right; it is
// to be refused, and nothing can follow.
func (f framer) next() (*message, error) {
	m := &message{}
	head := make([]byte, HeaderSize)
	if err := f.in.Fill(head, &m.Set); err != nil {
		m.Close()
		return nil, err
	}
	h, err := ParseHeader(head)
	m.Header = h
	if err != nil {
		m.Bad = fmt.Errorf("%w: %w", err, syscall.EINVAL)
		return m, err
	}
	m.payload = make([]byte, h.Size-HeaderSize)
	if err := f.in.Fill(m.payload, &m.Set); err != nil {
		m.Close()
		return nil, fdpass.CutOff(err)
	}
	return m, nil
}

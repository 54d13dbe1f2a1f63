package udp

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// mergedMost are the bytes of datagrams that the kernel hands over as one.
	mergedMost = 1 << 16
	// controlMost are the bytes of what it says of them: size, ECN and the address they were sent to.
	controlMost = 256
)

// merging is a UDP socket whose datagrams of one sender are read together, as the kernel got them
// from its neighbour or its network card, and are parted here: docs/design/0080.
type merging struct {
	*net.UDPConn
	buf     []byte
	left    []byte // received, and not handed out yet
	size    int    // of each datagram but the last
	control []byte // of all of them
	oob     [controlMost]byte
	peer    netip.AddrPort // who sent them
	from    *net.UDPAddr   // the same
}

// merge has the kernel hand over datagrams together where it can.
func merge(socket net.PacketConn) net.PacketConn {
	conn, ok := socket.(*net.UDPConn)
	if !ok {
		return socket
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return socket
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	})
	if err != nil || refused != nil { // before Linux 5.0
		return socket
	}
	return &merging{UDPConn: conn, buf: make([]byte, mergedMost)}
}

// ReadBatch is what a [quic.Transport] reads by: one datagram for each message. One goroutine at
// a time. A datagram that is longer than its buffer is cut.
func (s *merging) ReadBatch(messages []ipv4.Message, _ int) (int, error) {
	for len(s.left) == 0 {
		if err := s.read(); err != nil {
			return 0, err
		}
	}
	n := 0
	for ; n < len(messages) && len(s.left) > 0; n++ {
		m := &messages[n]
		datagram := s.left[:min(s.size, len(s.left))]
		s.left = s.left[len(datagram):]
		m.N = copy(m.Buffers[0], datagram)
		m.NN = copy(m.OOB, s.control)
		m.Addr = s.from
	}
	return n, nil
}

// read takes what the kernel has next; nothing is left of a datagram without bytes.
func (s *merging) read() error {
	n, controls, _, from, err := s.ReadMsgUDPAddrPort(s.buf, s.oob[:])
	if err != nil {
		return err
	}
	if from != s.peer || s.from == nil {
		s.peer, s.from = from, net.UDPAddrFromAddrPort(from)
	}
	s.left = s.buf[:n]
	s.size, s.control = parted(s.oob[:controls], n)
	return nil
}

// parted returns the size of datagrams that were read as one of so many bytes, and what else was said
// of them.
func parted(control []byte, bytes int) (size int, rest []byte) {
	size = max(bytes, 1)
	for at := 0; at < len(control); {
		header, body, left, err := unix.ParseOneSocketControlMessage(control[at:])
		if err != nil {
			break
		}
		next := len(control) - len(left)
		if header.Level != unix.IPPROTO_UDP || header.Type != unix.UDP_GRO {
			at = next
			continue
		}
		if len(body) >= 4 {
			if each := int(int32(binary.NativeEndian.Uint32(body))); each > 0 {
				size = each
			}
		}
		control = append(control[:at], control[next:]...)
	}
	return size, control
}

package mesh

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// hello names the link that a connection is for, and what has to be alike at both its ends.
type hello struct {
	from, to int // nodes
	link     int // of from
	terms
}

// terms are what both ends of a link have to agree on.
type terms struct {
	side    [3]int
	classic bool
}

// shape is the sides of a torus as text, "4x4x1".
type shape [3]int

func (s shape) String() string { return fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]) }

// flow is the name of a flow control, as fabric files have it.
func (t terms) flow() string {
	if t.classic {
		return "classic"
	}
	return "cumulative"
}

const (
	helloMagic   = 0x4c434e // "NCL", and a byte for the version
	helloVersion = '0' + firmware.MeshLinkVersion
	helloSize    = 12 + termsSize // behind those
	termsSize    = 4
)

// Answers to a hello, with the terms of the answering peer behind them. A peer that does not fit
// gets no more than that, except a difference that its operator can mend: peers on the list may
// know that.
const (
	helloAgreed         = 1
	helloAnotherTorus   = 2
	helloAnotherFlow    = 3
	helloAnotherVersion = 4
	helloConnected      = 5
	answerSize          = 1 + termsSize
)

// Reasons why a known peer does not fit; each is an ErrPeer.
var (
	// ErrTorus means that a peer is of a torus of another shape.
	ErrTorus = fmt.Errorf("another torus: %w", ErrPeer)
	// ErrFlow means that the links of a peer have another flow control.
	ErrFlow = fmt.Errorf("another flow control: %w", ErrPeer)
	// ErrVersion means that the links of a peer are of another version; it is a bridge.ErrABI.
	ErrVersion = fmt.Errorf("%w: %w", bridge.ErrABI, ErrPeer)
	// ErrConnected means that the link has a connection at the other end: the one that was
	// there before is not over, or another process has the name of this one. It is an ErrBusy.
	ErrConnected = fmt.Errorf("its end of the link has a connection, perhaps of another process of this name: %w: %w", ErrBusy, ErrPeer)
)

// hello is that of a link of this mesh.
func (m *Mesh) hello(node, link int) hello {
	return hello{node, m.Neighbour(node, link), link, m.terms()}
}

func (m *Mesh) terms() terms { return terms{m.config.Side, m.config.Classic} }

func (t terms) append(b []byte) []byte {
	b = append(b, byte(t.side[0]), byte(t.side[1]), byte(t.side[2]))
	if t.classic {
		return append(b, 1)
	}
	return append(b, 0)
}

func readTerms(b []byte) terms {
	return terms{side: [3]int{int(b[0]), int(b[1]), int(b[2])}, classic: b[3] == 1}
}

// differ returns why a link does not join ends of these terms and others; nil if it does.
func (t terms) differ(its terms) error {
	switch {
	case its.side != t.side:
		return fmt.Errorf("its torus is %v, this one %v: %w", shape(its.side), shape(t.side), ErrTorus)
	case its.classic != t.classic:
		return fmt.Errorf("its flow control is %s, here it is %s: %w", its.flow(), t.flow(), ErrFlow)
	}
	return nil
}

func (h hello) bytes() []byte {
	b := binary.LittleEndian.AppendUint32(nil, helloMagic|helloVersion<<24)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.from))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.to))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.link))
	return h.append(b)
}

func readHello(r io.Reader) (h hello, err error) {
	var b [helloSize]byte
	if _, err := io.ReadFull(r, b[:4]); err != nil {
		return h, err
	}
	switch magic := binary.LittleEndian.Uint32(b[:]); {
	case magic&0xffffff != helloMagic:
		return h, fmt.Errorf("no link speaks there: %w", ErrPeer)
	case magic>>24 != helloVersion:
		return h, fmt.Errorf("its links are of version %q, these of %q: %w", rune(magic>>24), rune(helloVersion), ErrVersion)
	}
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, err
	}
	h.from = int(binary.LittleEndian.Uint32(b[:]))
	h.to = int(binary.LittleEndian.Uint32(b[4:]))
	h.link = int(binary.LittleEndian.Uint32(b[8:]))
	h.terms = readTerms(b[12:])
	return h, nil
}

// fits checks a hello against this mesh and its certificate.
func (m *Mesh) fits(h hello, id *Identity, shown tls.ConnectionState) error {
	if err := m.terms().differ(h.terms); err != nil {
		return err
	}
	switch {
	case !m.has(h.from) || !m.has(h.to) || h.link < 0 || h.link >= Links ||
		m.Neighbour(h.from, h.link) != h.to || !m.here(h.to) || m.here(h.from):
		return fmt.Errorf("link %d from node %d to %d is none of this process: %w", h.link, h.from, h.to, ErrPeer)
	}
	if err := id.check(h.from, shown); err != nil {
		return fmt.Errorf("it is not node %d: %w", h.from, err)
	}
	return nil
}

// introduce sends the hello and waits for the other end to agree.
func introduce(ctx context.Context, p Peer, h hello) error {
	conn, _, err := p.Handshake(ctx)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeWithin)); err != nil {
		return err
	}
	var answer [answerSize]byte
	_, err = conn.Write(h.bytes()) // a peer that refuses may have closed already
	if err == nil {
		_, err = io.ReadFull(conn, answer[:])
	}
	if err != nil {
		return fmt.Errorf("it answered nothing, or hung up: %w: %w", ErrPeer, err)
	}
	if err := answered(answer[0], h.differ(readTerms(answer[1:]))); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// answered returns the meaning of an answer for the sender of the hello.
func answered(answer byte, differ error) error {
	switch answer {
	case helloAgreed:
		return differ // the peer lies, if there is a difference
	case helloAnotherTorus, helloAnotherFlow:
		if differ != nil {
			return differ
		}
	case helloConnected:
		return ErrConnected
	case helloAnotherVersion:
		return fmt.Errorf("its links are of another version than %q: %w", rune(helloVersion), ErrVersion)
	}
	return fmt.Errorf("answer %d: %w", answer, ErrPeer)
}

// answerTo is the answer for what is wrong with a hello; 0: none, it only ends.
func answerTo(wrong error) byte {
	switch {
	case wrong == nil:
		return helloAgreed
	case errors.Is(wrong, ErrTorus):
		return helloAnotherTorus
	case errors.Is(wrong, ErrFlow):
		return helloAnotherFlow
	case errors.Is(wrong, ErrVersion):
		return helloAnotherVersion
	case errors.Is(wrong, ErrBusy):
		return helloConnected
	}
	return 0
}

// welcome does the handshake and agrees.
func (m *Mesh) welcome(ctx context.Context, p Peer, id *Identity) (h hello, err error) {
	within, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	conn, state, err := p.Handshake(within)
	if err != nil {
		return h, err
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeWithin)); err != nil {
		return h, err
	}
	h, wrong := readHello(conn)
	if wrong == nil {
		wrong = m.fits(h, id, state)
	}
	if wrong == nil && m.taken(within, h.to, h.link^1) {
		wrong = fmt.Errorf("link %d of node %d has a connection: %w: %w", h.link^1, h.to, ErrBusy, ErrPeer)
	}
	answer := answerTo(wrong)
	if answer != 0 {
		_, err = conn.Write(m.terms().append([]byte{answer}))
	}
	switch {
	case wrong != nil:
		if answer != 0 {
			_, _ = conn.Read(make([]byte, 1)) // the peer hangs up when it has the answer, or the deadline passes
		}
		return h, wrong
	case err != nil:
		return h, err
	}
	return h, conn.SetDeadline(time.Time{})
}

// lingerTime is how long an end that refuses the other waits until that has read why.
const lingerTime = time.Second

// meet says hello over a connection that both ends were given, so that neither answers the
// other: each finds out for itself whether they fit.
func (m *Mesh) meet(ctx context.Context, conn net.Conn, node, link int) error {
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.closed:
		case <-over:
			return
		}
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	_ = conn.SetDeadline(time.Now().Add(handshakeWithin)) // one that has none ends by being closed
	own := m.hello(node, link)
	said := make(chan error, 1)
	go func() { _, err := conn.Write(own.bytes()); said <- err }()
	its, err := readHello(conn)
	if err == nil {
		err = own.meets(its)
	}
	if err == nil {
		err = <-said
	} else {
		linger(conn, said)
	}
	close(over)
	watching.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.isClosed():
		return ErrClosed
	case err != nil:
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// meets returns why a hello is not that of the other end of a link; nil if it is.
func (h hello) meets(its hello) error {
	if err := h.differ(its.terms); err != nil {
		return err
	}
	if its.from != h.to || its.to != h.from || its.link != h.link^1 {
		return fmt.Errorf("it has link %d from node %d to %d, this is link %d from node %d to %d: %w",
			its.link, its.from, its.to, h.link, h.from, h.to, ErrPeer)
	}
	return nil
}

// linger waits until the other end of a connection that is refused has read this one's hello: what
// it says is read, since its hello may be longer, and unread words would take ours along.
func linger(conn net.Conn, said <-chan error) {
	_ = conn.SetDeadline(time.Now().Add(lingerTime))
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, conn) // ends with the connection, or its deadline
	}()
	half, ok := conn.(interface{ CloseWrite() error })
	if <-said == nil && ok && half.CloseWrite() == nil {
		<-read
	}
}

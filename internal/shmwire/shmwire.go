package shmwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Version is that of the wire. Both sides have the same, or part.
const Version = 6

// Network is the kind of socket: it keeps the limits of messages.
const Network = "unixpacket"

const (
	magic = 0x4d48534e // "NSHM"
	// Size is that of every message, in bytes.
	Size = 32
)

// Kind is what a message is for. A request is answered by one message of its kind.
type Kind uint16

// Kinds of messages, all from the client at first.
const (
	Hello    Kind = iota + 1 // Epoch: the last it knows; Address: see AddressOf; Size: a number that the client's hosts have in common, or 0; the answer has the epoch of the host, its node and the size of its area
	Map                      // Address, Size and a descriptor: memory that the device may reach from now on
	Unmap                    // Address, Size: … not any more; answered when nothing uses it
	Fence                    // answered when no DMA runs, and none will
	State                    // answered with a descriptor: what the process's node knows of all nodes
	Route                    // Address: see AddressOfRoute; answered with a descriptor: the way
	Cut                      // Address: see AddressOfLink; Size: 1 to cut a link of the process's node, 0 to mend it
	Test                     // Address: likewise; Size: words; answered with those that were checked, and those that were wrong
	Accesses                 // answered with a descriptor: the socket for puts and gets, once
	Window                   // Address: in the descriptor's memory; Size: bytes; Epoch: a bridge.WindowAccess; answered with the key of the window as Address and, as Size, AddressOf its node
	Revoke                   // Address: the key of a window; answered when nothing touches it any more
	Share                    // first, of the device's own user: Address and Size: as of Limits, and a descriptor: a socket that listens; its clients have these limits
	Unshare                  // first, likewise, at the socket of a share: it ends; answered when the device has forgotten its clients
	Expose                   // Address, Size: of memory that is mapped, and its descriptor; answered with the key, as Address, under which clients get that, until it is unmapped, or after Exposures more
	Fetch                    // Address: the key; answered with Size and the descriptor
)

// Limits of the windows of one user's clients together: half of what a node has.
const (
	UserWindows     = 2 * bridge.HostWindows
	UserWindowBytes = 2 * bridge.HostWindowBytes
)

// Exposures is how many pieces of memory a client exposes at once.
const Exposures = 64

// TestSlice bounds one request to test a link, as others wait for it. A longer test is several.
const TestSlice = 100 * time.Millisecond

// AddressOfRoute is that of a request for the way between two nodes.
func AddressOfRoute(from, to abi.Node) uint64 { return uint64(from)<<32 | uint64(to) }

// RouteOf is the way that a request is for.
func RouteOf(address uint64) (from, to abi.Node) {
	return abi.Node(address >> 32), abi.Node(address & math.MaxUint32)
}

// AddressOfLink is that of a request about a link of a node.
func AddressOfLink(n abi.Node, link int) uint64 { return uint64(n)<<32 | uint64(link) }

// LinkOf is the link that a request is about.
func LinkOf(address uint64) (n abi.Node, link int) {
	return abi.Node(address >> 32), int(address & math.MaxUint16)
}

// AddressOf is that of a hello to the device of a node of the fabric, by way of the device
// process; 0: to the device of that process. An answer has that of the node whose device it
// is; 0: it is in no fabric.
func AddressOf(n abi.Node) uint64 { return 1<<63 | uint64(n) }

// NodeOf is the node that an address of a hello names; false if it names none.
func NodeOf(address uint64) (abi.Node, bool) {
	n := abi.Node(address)
	return n, address == AddressOf(n)
}

// Message is one message, in either direction.
type Message struct {
	Kind    Kind
	Status  uint16 // of an answer: 0, or an abi.Status
	Version uint16
	Epoch   uint32
	Address uint64
	Size    uint64
}

// Of is what a bound is of.
type Of uint64

// Owners of the limit that a refused request exceeded; 0 if the other side does not name it.
const (
	OfDevice Of = iota + 1
	OfUser
	OfClient
	OfNode  // hosts of one node at the device of another, or windows of a node
	OfShare // clients of a share
)

// Bound is what a refused request would have exceeded.
type Bound struct {
	Of   Of
	Most uint64 // clients, or bytes
}

// Refusal returns the answer to a request that is refused.
func Refusal(k Kind, status abi.Status, b Bound) Message {
	return Message{Kind: k, Status: uint16(status), Address: uint64(b.Of), Size: b.Most}
}

// Err returns why a request was refused, nil if it was not.
func (m *Message) Err() error {
	if m.Status == 0 {
		return nil
	}
	err := bridge.Error(abi.Status(m.Status))
	switch of := Of(m.Address); {
	case m.Kind == Hello && errors.Is(err, bridge.ErrABI):
		return fmt.Errorf("the device of that node is of another shape: %w", err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrDeviceLost):
		return fmt.Errorf("%w: that node does not answer", err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrTargetTimeout):
		return fmt.Errorf("an island of the device has no processor, or is kept by a program: %w", err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrNotSupported):
		return fmt.Errorf("the device of this process is no node of a fabric: %w", err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrBusy) && of == OfNode:
		return fmt.Errorf("a node takes %d hosts of another: %w", m.Size, err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrBusy) && of == OfUser:
		return fmt.Errorf("this user has as many clients of the device as a user gets (%d): %w", m.Size, err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrBusy) && of == OfShare:
		return fmt.Errorf("this share of the device has as many clients as it gets (%d): %w", m.Size, err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrNoMemory):
		return fmt.Errorf("the device refuses: its process has no descriptors, threads or memory left: %w", err)
	case m.Kind != Hello && errors.Is(err, bridge.ErrNoMemory) && of == OfDevice:
		return fmt.Errorf("the device refuses: its process has no descriptors left: %w", err)
	case m.Kind == Hello && errors.Is(err, bridge.ErrBusy):
		return fmt.Errorf("the device has no place for another client: %w", err)
	case (m.Kind == Cut || m.Kind == Test || m.Kind == Share || m.Kind == Unshare) && of == OfUser:
		return fmt.Errorf("only root and the user of the device process may do that: %w", fs.ErrPermission)
	case m.Kind == Share && of == OfNode:
		return fmt.Errorf("a node of a fabric has no shares: %w", err)
	case m.Kind == Share && errors.Is(err, bridge.ErrInvalid):
		return fmt.Errorf("the device has no such part for so many clients: %w", err)
	case m.Kind == Test && errors.Is(err, bridge.ErrClosed):
		return bridge.ErrLinkDown
	case m.Kind == Map && errors.Is(err, bridge.ErrNoMemory) && of == OfUser:
		return fmt.Errorf("the clients of this user may map %d bytes together: %w", m.Size, err)
	case m.Kind == Map && errors.Is(err, bridge.ErrNoMemory) && of == OfShare:
		return fmt.Errorf("the clients of this share of the device may map %d bytes together: %w", m.Size, err)
	case m.Kind == Window && errors.Is(err, bridge.ErrNoMemory) && of == OfClient:
		return fmt.Errorf("a process has windows of %d bytes, and %d windows: %w", m.Size, bridge.HostWindows, err)
	case m.Kind == Window && errors.Is(err, bridge.ErrNoMemory) && of == OfUser:
		return fmt.Errorf("the clients of this user may have windows of %d bytes together, and %d windows: %w", m.Size, UserWindows, err)
	case m.Kind == Window && errors.Is(err, bridge.ErrNoMemory) && of == OfNode:
		return fmt.Errorf("the node has as many windows as it takes: %w", err)
	case m.Kind == Map && errors.Is(err, bridge.ErrNoMemory) && of == OfClient:
		return fmt.Errorf("a client may map %d bytes: %w", m.Size, err)
	}
	return fmt.Errorf("the device refuses: %w", err)
}

// Errors of a message.
var (
	// ErrForeign: the other side speaks something else.
	ErrForeign = errors.New("no message of a shared device")
	// ErrVersion: the other side speaks another version.
	ErrVersion = errors.New("other version of the wire")
)

func (m *Message) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint16(b, Version)
	b = binary.LittleEndian.AppendUint16(b, uint16(m.Kind))
	b = binary.LittleEndian.AppendUint16(b, m.Status)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, m.Epoch)
	b = binary.LittleEndian.AppendUint64(b, m.Address)
	return binary.LittleEndian.AppendUint64(b, m.Size)
}

// Parse reads a message. With ErrVersion the version is that of the other side.
func Parse(b []byte) (Message, error) {
	var m Message
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != magic {
		return m, ErrForeign
	}
	m.Version = binary.LittleEndian.Uint16(b[4:])
	if m.Version != Version {
		return m, fmt.Errorf("%w: %d in place of %d", ErrVersion, m.Version, Version)
	}
	if len(b) != Size || binary.LittleEndian.Uint16(b[10:]) != 0 {
		return m, ErrForeign
	}
	m.Kind = Kind(binary.LittleEndian.Uint16(b[6:]))
	m.Status = binary.LittleEndian.Uint16(b[8:])
	m.Epoch = binary.LittleEndian.Uint32(b[12:])
	m.Address = binary.LittleEndian.Uint64(b[16:])
	m.Size = binary.LittleEndian.Uint64(b[24:])
	return m, nil
}

// Send writes a message with descriptors, which stay the caller's.
func Send(c *net.UnixConn, m *Message, files ...int) error {
	return fdpass.Send(c, m.encode(), files...)
}

// Receive reads a message with exactly so many descriptors, which are the caller's; an
// answer that refuses comes with none. EMFILE: the message is there, but this process had no
// descriptors left for those that came with it.
func Receive(c *net.UnixConn, files func(*Message) int) (Message, []int, error) {
	b := make([]byte, Size+1)
	n, set, err := fdpass.Receive(c, b)
	if err != nil {
		return Message{}, nil, err
	}
	if n == 0 {
		err = io.EOF
	}
	var m Message
	if err == nil {
		m, err = Parse(b[:n])
	}
	if err == nil {
		err = set.Bad
	}
	if err == nil && len(set.Files) != files(&m) {
		err = fmt.Errorf("%w: %d descriptors in place of %d", ErrForeign, len(set.Files), files(&m))
	}
	if err != nil {
		set.Close()
		return m, nil, err
	}
	return m, set.Files, nil
}

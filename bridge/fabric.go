package bridge

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// FabricLinks is how many links a node has, in the order x+, x-, y+, y-, z+, z-.
const FabricLinks = 6

// FabricNode is a Device that is a node of a fabric.
type FabricNode interface {
	Device
	// Fabric returns the fabric that the device is a node of; nil if there is none.
	Fabric() Fabric
}

// Fabric is a torus of nodes, as one of them knows it. All methods are safe for
// concurrent use. Errors: ErrClosed, ErrInvalid for a node or link that is not
// there, and that of ctx.
type Fabric interface {
	// State returns what the node knows of all nodes, and what those that can be
	// asked counted.
	State(ctx context.Context) (FabricState, error)
	// Route returns the way of a packet between two nodes now; nil if there is none.
	Route(ctx context.Context, from, to abi.Node) ([]FabricHop, error)
	// Device returns the device of another node, as this process reaches it. It is opened when
	// it is first asked for, and closed when each of those that were returned is closed, or
	// with the fabric. ErrDeviceLost if it does not answer, ErrInvalid for the node that this
	// device is.
	Device(ctx context.Context, n abi.Node) (Device, error)
	// CutLink cuts a link in both directions, or mends it. ErrNotSupported for a link of a
	// node that is another process. After the error of ctx it may be done later.
	CutLink(ctx context.Context, node abi.Node, link int, cut bool) error
	// KillNode ends a node with all its links, or starts it anew. ErrNotSupported where
	// nodes are processes.
	KillNode(ctx context.Context, node abi.Node, dead bool) error
	// SilenceNode ends a node as one that lost its power: nothing hangs up, and others miss
	// its words. KillNode starts it anew, and has its errors.
	SilenceNode(ctx context.Context, node abi.Node) error
	// TestLink sends pseudo-random words from a node by a link, between packets, which
	// it does not disturb, until the other end checked so many or ctx ends. The result
	// counts the words that were checked, also with an error. The error is that of ctx,
	// ErrLinkDown if the link is not up or was not meanwhile, ErrBusy if it is being tested.
	TestLink(ctx context.Context, node abi.Node, link int, words uint64) (LinkTest, error)
	// Put writes data to a window of any node from offset on, and returns when all of it is
	// there; nobody at the window takes part. Lost packets are sent again until ctx ends, and
	// nothing is written twice. After an error a part of it may be there; none of it arrives
	// later than what this process puts there after that. A put of no bytes asks the window,
	// too; its offset may be the end of the window.
	//
	// The error is that of ctx, or wraps one of these:
	//   - ErrNotSubscribed: no such window, it was revoked, or its node started anew;
	//   - ErrNotSupported: the window is not for that;
	//   - ErrRange: a piece is not in the window;
	//   - ErrDMA: memory of the window, or data, cannot be reached;
	//   - ErrDeviceLost: no way leads to its node, or the own node died;
	//   - ErrInvalid: no such node;
	//   - ErrClosed.
	Put(ctx context.Context, to FabricWindow, offset uint64, data []byte) error
	// Get reads from a window of any node from offset on until buf is full. Of bytes that
	// are written meanwhile it may read some before and some after. Errors are those of Put;
	// after one buf may hold anything.
	Get(ctx context.Context, from FabricWindow, offset uint64, buf []byte) error
	// Window makes memory of this process a window of the own node. Until it is revoked, any
	// program at any node that has the result can put to it and get from it. Data that others
	// put appear there at any time, and a get reads the memory as it is at that moment. A
	// caller that uses the memory meanwhile must coordinate with them. It ends with Reset and
	// Close of the device as well, and with its node. The memory stays where it is and alive
	// until then; a region that it is in is not released, and its Close is ErrBusy.
	//
	// The error wraps ErrInvalid for no bytes or no access, ErrTooLarge above HostWindowBytes,
	// ErrDeviceLost, ErrClosed, or the error of ctx. It is ErrNoMemory at the limits of windows
	// or bytes of the process or its node. It is ErrNotSupported where the device reaches only
	// memory of Alloc, and this is other memory.
	Window(ctx context.Context, mem []byte, access WindowAccess) (HostWindow, error)
}

// Limits on the windows of a process.
const (
	HostWindows     = 64       // at once
	HostWindowBytes = 64 << 20 // in all of them
)

// WindowAccess is what others may do with a window.
type WindowAccess int

// Kinds of access; both may be given.
const (
	WindowRead  WindowAccess = 1 << iota // get from it
	WindowWrite                          // put to it
	windowEnd
)

// Valid reports whether it is one of them, or both.
func (a WindowAccess) Valid() bool { return a > 0 && a < windowEnd }

// HostWindow is memory of this process that others put to and get from.
type HostWindow interface {
	// Remote returns what others need to know of it.
	Remote() FabricWindow
	// Revoke ends the window: requests for it are refused from now on, and its memory is not
	// touched any more when Revoke returns. It is idempotent.
	Revoke()
}

// FabricWindow names memory at a node that others put to and get from: a host's, as of
// [Fabric.Window], or that of a device program which called nfc_window. It is what they need
// to know.
type FabricWindow struct {
	Node abi.Node
	Key  uint64
}

// LinkTest is the result of a test of a link.
type LinkTest struct {
	// Words of 128 bits that the other end checked, and those of them that were not as
	// sent.
	Words, Wrong uint64
}

// FabricHop is a step of a route.
type FabricHop struct {
	// Link is one of the six of the node it leaves.
	Link int
	// Detour: the packet left dimension order.
	Detour bool
}

// FabricState is a fabric at one moment.
type FabricState struct {
	// Side is how many nodes there are in x, y and z.
	Side [3]int
	// Node is the one that was asked.
	Node abi.Node
	// Nodes are all, x first: that of x, y, z has index x + X·(y + Y·z).
	Nodes []FabricNodeState
}

// FabricNodeState is what is known of a node.
type FabricNodeState struct {
	// Word is its diagnostic word; one that is not valid: nothing is known.
	Word abi.Diagnostic
	// Alive: it runs. The fields below are zero if it does not run, or cannot be asked.
	Alive bool
	// Forwarded, Detours and Unreachable count packets of others that continued, those of
	// anybody that left dimension order here, and those that were lost as no way led on.
	Forwarded, Detours, Unreachable uint64
	// Blocked is how long first packets of inputs waited for their output: packets behind them,
	// for other outputs too, waited as long.
	Blocked time.Duration
	// Windows are those of its memory that there are now, and WindowBytes how much that is.
	Windows, WindowBytes uint64
	// PageHits and PageMisses count pages of its windows that requests found in the cache of
	// those used last, and those that were looked up.
	PageHits, PageMisses uint64
	// Links as the node itself sees them.
	Links [FabricLinks]FabricLinkState
}

// FabricLinkState is one end of a link.
type FabricLinkState struct {
	// Joined: there is a node at the other end, by the shape of the torus.
	Joined bool
	// Up: it carries packets.
	Up bool
	// Medium carries its words.
	Medium FabricMedium
	// Level is its health.
	Level abi.Level
	// Window is how many words may be under way.
	Window int
	// RoundTrip is as measured.
	RoundTrip time.Duration
	// BytesSent and BytesReceived count payload, Packets those sent.
	BytesSent, BytesReceived, Packets uint64
	// Repeated counts packets sent again, Errors faulty words received, Restarts
	// how often the link was aligned.
	Repeated, Errors, Restarts uint64
}

// FabricMedium is what carries the words of a link.
type FabricMedium uint8

// The media of links.
const (
	MediumUnknown    FabricMedium = iota // it has none now, or is of a node that can not be asked
	MediumMemory                         // rings of one process
	MediumConnection                     // one that was made elsewhere, and is private
	MediumTLS                            // TLS over TCP
	MediumUDP                            // QUIC's datagrams over UDP
	mediumCount
)

var mediumNames = [mediumCount]string{"", "memory", "connection", "tls", "udp"}

// String returns "tls"; nothing for what is not known.
func (m FabricMedium) String() string {
	if m >= mediumCount {
		return ""
	}
	return mediumNames[m]
}

// ParseFabricAddress splits where a node of a fabric is reached: "host:port" and "tcp://host:port"
// are TLS over TCP, "udp://host:port" is QUIC. Errors other than those of its form appear when the
// address is used.
func ParseFabricAddress(address string) (m FabricMedium, host string, err error) {
	scheme, host, ok := strings.Cut(address, "://")
	if !ok {
		scheme, host = "tcp", address
	}
	switch scheme {
	case "tcp":
		m = MediumTLS
	case "udp":
		m = MediumUDP
	default:
		return 0, "", fmt.Errorf("address %q: %w: want HOST:PORT, tcp:// or udp://HOST:PORT", address, ErrInvalid)
	}
	if _, port, err := net.SplitHostPort(host); err != nil || port == "" {
		return 0, "", fmt.Errorf("address %q: %w: want HOST:PORT, tcp:// or udp://HOST:PORT", address, ErrInvalid)
	}
	return m, host, nil
}

package bridge

import (
	"context"
	"fmt"
	"regexp"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// HostListener is a Device whose host accepts channels of other hosts of the device, and opens
// channels to them.
type HostListener interface {
	// Listen makes this host a target of its device. ErrNotSupported where the device cannot,
	// or keeps no names and one is given; ErrBusy if another listener has the name. ErrNoMemory
	// if the host or the device has as many listeners as it may, or no context is free.
	Listen(ctx context.Context, o ListenOptions) (Listener, error)
	// Dial opens the channel to the listener of a name. ErrNotSubscribed if there is none that
	// this host may connect to, ErrNotSupported where the device keeps no names. A device of a
	// fabric takes the name behind the node of the listener, too: "2.0.1/thumbnails".
	Dial(ctx context.Context, name string, o DialOptions) (Channel, error)
}

// Mover is a Channel that carries ends of other channels, and memory.
type Mover interface {
	// SendChannel gives this host's end of another channel to the host at the far end, whose
	// ReceiveChannel returns it. nil: the end is there, and each call of other is ErrMoved. With an error
	// it is still here. ErrBusy if calls of other are under way, ErrKindMismatch if the far host took
	// what was sent as a message, ErrInvalid for a channel of another device, or through itself.
	// ErrNotSupported unless both are channels between hosts, of a device that moves ends.
	SendChannel(ctx context.Context, other Channel) error
	// ReceiveChannel takes the end that the far host sends. With ErrKindMismatch that offers something
	// else, with ErrAborted the end is not to be had any more.
	ReceiveChannel(ctx context.Context) (Channel, error)
	// SendRegion gives a region of Alloc, or one that was received, to the host at the far end, whose
	// ReceiveRegion returns it. nil: it is that host's, and of no use here. With an error it is still
	// here. ErrMoved if another host has it, ErrBusy while a transfer or a window uses it, ErrInvalid
	// for a region of another device. ErrKindMismatch if the far host took what was sent as a message,
	// or does not reach the memory. ErrNotSupported for other memory, channels to
	// processes, and devices whose hosts share none.
	SendRegion(ctx context.Context, r Region) error
	// ReceiveRegion takes the region that the far host gives. With ErrKindMismatch that offers something
	// else, with ErrAborted the region is not to be had any more.
	ReceiveRegion(ctx context.Context) (Region, error)
}

// ListenOptions describes a listener. The zero value is valid.
type ListenOptions struct {
	// Name is the name that other hosts dial, see [CheckName]. A listener without one is found
	// by its target only.
	Name string
	// Anyone lets hosts of other users connect, too, and hosts at other nodes of a fabric,
	// whose user the device does not know. Without it those find no such target.
	Anyone bool
}

// DialOptions describes the listeners that Dial considers. The zero value is valid.
type DialOptions struct {
	// Anyone includes listeners of other users that let in anyone. A listener of this host's
	// own user has precedence. Without it a stranger's listener of that name is not found.
	Anyone bool
}

// listenerName is the form of a listener's name.
var listenerName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,22}$`)

// CheckName returns nil for a name that a listener may have: an ASCII letter, and up to 22 letters,
// digits, dots, underscores and hyphens. Any other is ErrInvalid.
func CheckName(name string) error {
	if !listenerName.MatchString(name) {
		return fmt.Errorf("%w: a name is a letter and up to %d letters, digits, dots, underscores and hyphens", ErrInvalid, abi.NameSize-2)
	}
	return nil
}

// Listener is a host that is a target. All methods are safe for concurrent use.
type Listener interface {
	// Target returns the id that other hosts of the device subscribe to, any number of times.
	Target() Target
	// Accept waits for the next host that connects and returns the channel to it. When
	// ctx ends first, the next call gets that host.
	Accept(ctx context.Context) (Channel, error)
	// Close ends the listener: hosts that connected, and were not accepted, find a closed
	// channel. Channels that were accepted stay. It is idempotent.
	Close() error
}

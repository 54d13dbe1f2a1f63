package bridge

import "context"

// HostListener is a Device whose host other hosts of the device can connect to.
type HostListener interface {
	// Listen makes this host a target of its device. ErrNotSupported where the device cannot,
	// ErrNoMemory if the host or the device has as many listeners as it may, or no context
	// is free.
	Listen(ctx context.Context, o ListenOptions) (Listener, error)
}

// ListenOptions says who may connect. The zero value is valid.
type ListenOptions struct {
	// Anyone lets hosts of other users connect, too, and hosts at other nodes of a fabric,
	// of which the device does not know whose they are. Without it those find no such
	// target.
	Anyone bool
}

// Listener is a host that is a target. All methods are safe for concurrent use.
type Listener interface {
	// Target returns the id that other hosts of the device subscribe to, any number of times.
	Target() Target
	// Accept waits for the next host that connects and returns the channel to it. When
	// ctx ends first, the next call gets that host.
	Accept(ctx context.Context) (Channel, error)
	// Close ends the listener: who connected, and was not accepted, finds a closed channel.
	// Channels that were accepted stay. It is idempotent.
	Close() error
}

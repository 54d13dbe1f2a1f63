package nfcomms

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// Option adjusts [Open], [Device.Listen] or [Device.Dial]. A call that does not take it returns
// ErrInvalid.
type Option struct {
	ops   []string // the calls that take it
	apply func(*options)
}

type options struct {
	logger  *slog.Logger
	anyUser bool
}

// optionsOf collects the options of a call.
func optionsOf(ctx context.Context, op string, list []Option) (o options, err error) {
	for _, option := range list {
		if !slices.Contains(option.ops, op) {
			return o, unlessEnded(ctx, fmt.Errorf("%w: an option that %s does not take", ErrInvalid, op))
		}
		option.apply(&o)
	}
	return o, nil
}

// WithLogger, of Open, gives the device's log lines, and rare events of the back end, to a logger: in
// order, on a goroutine of its own, so that a handler may block, and may call the device. Records
// that a slow handler leaves no room for are dropped, and counted in Stats.LogDropped. Without a
// logger all are discarded.
func WithLogger(l *slog.Logger) Option {
	return Option{[]string{opOpen}, func(o *options) { o.logger = l }}
}

// AnyUser, of Listen and Dial, lets a listener and hosts of different users find each other; without
// it both must belong to one user. Both sides have to give it. Hosts at different nodes of a fabric
// count as different users, as a node does not know the users of another.
func AnyUser() Option {
	return Option{[]string{opListen, opDial}, func(o *options) { o.anyUser = true }}
}

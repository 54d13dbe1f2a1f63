package control

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Pauses between the tries of a watch that lost its server.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

// WatchDevices yields what the stream of the same name gives, and continues when
// the server cuts it off, restarts, or cannot be reached for a while.
//
// An error that is ErrResumeExpired reports that what was yielded before is void: a new
// snapshot follows. Any other error is the last thing it yields, also that of
// ctx, which ends it.
func (c *Client) WatchDevices(ctx context.Context) iter.Seq2[*nfcommsv1.WatchDevicesResponse, error] {
	return follow(ctx, func(ctx context.Context, token string) (grpc.ServerStreamingClient[nfcommsv1.WatchDevicesResponse], error) {
		return c.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{ResumeToken: token})
	})
}

// WatchChannels watches the channels of a device, or of AllDevices, as
// WatchDevices.
func (c *Client) WatchChannels(ctx context.Context, parent string) iter.Seq2[*nfcommsv1.WatchChannelsResponse, error] {
	return follow(ctx, func(ctx context.Context, token string) (grpc.ServerStreamingClient[nfcommsv1.WatchChannelsResponse], error) {
		return c.Channels.WatchChannels(ctx, &nfcommsv1.WatchChannelsRequest{Parent: parent, ResumeToken: token})
	})
}

// WatchEvents watches the events of a device, or of AllDevices, as WatchDevices.
func (c *Client) WatchEvents(ctx context.Context, parent string) iter.Seq2[*nfcommsv1.WatchEventsResponse, error] {
	return follow(ctx, func(ctx context.Context, token string) (grpc.ServerStreamingClient[nfcommsv1.WatchEventsResponse], error) {
		return c.Events.WatchEvents(ctx, &nfcommsv1.WatchEventsRequest{Parent: parent, ResumeToken: token})
	})
}

// message is a pointer to a message of a watch.
type message[R any] interface {
	*R
	GetResumeToken() string
}

// follow yields the messages of one stream after the other; open begins one
// where the token says.
func follow[R any, M message[R]](ctx context.Context, open func(context.Context, string) (grpc.ServerStreamingClient[R], error)) iter.Seq2[M, error] {
	return func(yield func(M, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		token, seen, pause := "", false, retryFirst
		for {
			stream, err := open(ctx, token)
			for err == nil {
				var r *R
				if r, err = stream.Recv(); err != nil {
					break
				}
				seen, pause, token = true, retryFirst, M(r).GetResumeToken()
				if !yield(r, nil) {
					return
				}
			}
			again := errors.Is(err, ErrSlowWatcher) || errors.Is(err, ErrShutdown) || errors.Is(err, ErrUnavailable)
			switch void := errors.Is(err, ErrResumeExpired); {
			case !again && !void:
				yield(nil, err)
				return
			case void || seen && token == "": // there is no resuming within a snapshot
				token, seen = "", false
				if !void {
					err = fmt.Errorf("%w: %w", ErrResumeExpired, err)
				}
				if !yield(nil, err) {
					return
				}
			}
			if again && !sleep(ctx, pause) {
				yield(nil, ctx.Err())
				return
			}
			pause = min(2*pause, retryMost)
		}
	}
}

// sleep waits; false if ctx ends first.
func sleep(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

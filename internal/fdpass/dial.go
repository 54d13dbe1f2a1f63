package fdpass

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// Peer is the process at the other end of a connection. Its process may have
// ended since, and another may have its number.
type Peer struct {
	PID      int32
	UID, GID uint32
}

// crowdPause is the time between two tries to get into a full backlog.
const crowdPause = time.Millisecond

// Dial connects to a UNIX socket. While others flood it the kernel has no room
// for a connection that the server has not taken yet, and says so at once to a
// process that does not block; this waits as one that does, until ctx ends.
// Its error is then that of ctx.
func Dial(ctx context.Context, network, path string) (*net.UnixConn, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, network, path)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		select {
		case <-time.After(crowdPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Interrupt ends what waits for a deadline when ctx ends, by a deadline that is over.
// After the returned function there is none, also where ctx ends meanwhile.
func Interrupt(ctx context.Context, deadline func(time.Time) error) (undo func()) {
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(set)
		_ = deadline(time.Unix(1, 0))
	})
	return func() {
		if stop() {
			return
		}
		<-set
		_ = deadline(time.Time{})
	}
}

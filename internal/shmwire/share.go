package shmwire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Limits are those of a share: a part of a device, with a socket of its own, whose clients have it
// together.
type Limits struct {
	Clients   uint16 // at a time, from 1
	Processes uint16 // of all clients on each island; 0: as many as the device's shape has for each client
	Channels  uint32 // of all clients; 0: likewise
	Memory    uint64 // bytes that they may map
}

// request is the message that makes a share.
func (l Limits) request() Message {
	return Message{Kind: Share, Address: uint64(l.Clients)<<48 | uint64(l.Processes)<<32 | uint64(l.Channels), Size: l.Memory}
}

// LimitsOf are those that a message of kind Share asks for.
func LimitsOf(m *Message) Limits {
	return Limits{
		Clients: uint16(m.Address >> 48), Processes: uint16(m.Address >> 32 & math.MaxUint16),
		Channels: uint32(m.Address & math.MaxUint32), Memory: m.Size,
	}
}

// shareTime bounds the wait for an answer about a share: the device forgets its clients.
const shareTime = 5 * time.Second

// OpenShare has the device process of a socket serve another one, of path and mode, with limits,
// until it ends or [CloseShare]. The socket stays that of the device process alone, so a share is
// there while its socket accepts connections. A socket at path that accepts none is replaced.
func OpenShare(ctx context.Context, device, path string, mode os.FileMode, limits Limits) error {
	if isServed(path) {
		return nil
	}
	_ = os.Remove(path) // of a device process that has gone; listening says what else is wrong
	l, err := net.ListenUnix(Network, &net.UnixAddr{Name: path, Net: Network})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err == nil {
		err = errors.Join(os.Chmod(path, mode), ask(ctx, device, limits.request(), int(f.Fd())), f.Close())
	}
	if err = errors.Join(err, l.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// CloseShare ends a share, and removes its socket. It returns when the device has forgotten its
// clients. A share that is gone already is none.
func CloseShare(ctx context.Context, path string) error {
	if isServed(path) {
		if err := ask(ctx, path, Message{Kind: Unshare}); err != nil {
			return err
		}
	}
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// isServed reports whether a socket accepts connections.
func isServed(path string) bool {
	c, err := net.DialUnix(Network, nil, &net.UnixAddr{Name: path, Net: Network})
	if err == nil {
		_ = c.Close()
	}
	return err == nil || errors.Is(err, syscall.EAGAIN) // its queue is full
}

// ask makes a request at a socket.
func ask(ctx context.Context, path string, m Message, files ...int) error {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	c, err := fdpass.Dial(ctx, Network, path)
	if err != nil {
		return err
	}
	defer c.Close()
	defer fdpass.Interrupt(ctx, c.SetDeadline)()
	if err := Send(c, &m, files...); err != nil {
		return err
	}
	answer, _, err := Receive(c, func(*Message) int { return 0 })
	switch {
	case err == nil && answer.Kind == m.Kind:
		return answer.Err()
	case ctx.Err() != nil:
		return fmt.Errorf("the device process does not answer: %w", ctx.Err())
	default:
		return fmt.Errorf("the device process knows no shares: %w", errors.Join(bridge.ErrABI, err))
	}
}

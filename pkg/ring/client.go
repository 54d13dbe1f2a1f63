//go:build unix

package ring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// dial connects to the process that created a ring.
func dial(ctx context.Context, name string) (*net.UnixConn, error) {
	if err := platform(); err != nil {
		return nil, err
	}
	c, err := fdpass.Dial(ctx, "unixpacket", socketName(name).Name)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: no process of this user serves it", ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if err := trusted(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// ask sends a request and returns the first answer and its descriptors.
func ask(ctx context.Context, c *net.UnixConn, want role, files int) (uint32, []*os.File, error) {
	defer fdpass.Interrupt(ctx, c.SetDeadline)()
	_, lost := c.Write(message(uint32(want)))
	answer, got, err := receiveFiles(c, files) // a refusal may precede the request
	if err != nil && lost != nil {
		err = lost
	}
	return answer, got, ended(ctx, err)
}

// ended names the end of ctx as the reason where it is.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fetch gets the descriptors of a ring.
func fetch(ctx context.Context, name string) ([]*os.File, error) {
	c, err := dial(ctx, name)
	if err != nil {
		return nil, ended(ctx, err)
	}
	defer c.Close()
	answer, files, err := ask(ctx, c, wantMemory, 3)
	if err == nil && answer != answerOK {
		return nil, refusal(answer, wantMemory)
	}
	return files, err
}

// claimRole takes a role and returns the connection that holds it.
func claimRole(ctx context.Context, name string, r role) (*net.UnixConn, error) {
	c, err := dial(ctx, name)
	if err != nil {
		return nil, ended(ctx, err)
	}
	answer, _, err := ask(ctx, c, r, 0)
	if err == nil && answer == answerWait {
		undo := fdpass.Interrupt(ctx, c.SetDeadline)
		answer, _, err = receiveFiles(c, 0)
		undo()
		err = ended(ctx, err)
	}
	if err == nil && answer == answerOK {
		return c, nil
	}
	_ = c.Close()
	if err == nil {
		err = refusal(answer, r)
	}
	return nil, err
}

// refusal is the error of an answer that is not OK.
func refusal(answer uint32, want role) error {
	switch answer {
	case answerBusy:
		return fmt.Errorf("%w: it has a %v", ErrBusy, want)
	case answerDenied:
		return ErrPermission
	}
	return fmt.Errorf("%w: answer %d", ErrPeer, answer)
}

package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// twoPipes is a pipe each way.
type twoPipes struct{ in, out *os.File }

func (p twoPipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p twoPipes) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p twoPipes) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

// openPipes makes this process's ends and returns those of the child.
func (c *child) openPipes() ([]*os.File, error) {
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ourOut.Close())
	}
	c.pipe = &wire{conn: twoPipes{ourIn, ourOut}}
	return []*os.File{theirIn, theirOut}, nil
}

// inheritedPipes are the child's ends, which wait in the runtime's poller.
func inheritedPipes() twoPipes {
	for fd := 3; fd <= 4; fd++ {
		_ = syscall.SetNonblock(fd, true) // else a thread waits in each call
	}
	return twoPipes{os.NewFile(3, "pipe"), os.NewFile(4, "pipe")}
}

// newPipe exchanges with the other process over two pipes.
func newPipe(c *child, op, size, batch int) *contender {
	return newWire(namePipe, c, c.pipe, op, size, batch)
}

// newWire exchanges with the other process over what it serves.
func newWire(name string, c *child, over *wire, op, size, batch int) *contender {
	msg, answer := buffer(size), make([]byte, 8)
	if op == wireEcho {
		answer = make([]byte, size)
	}
	return &contender{
		name: name, does: doesOf(op), size: size, batch: batch, cpu: c.cpu,
		run: func(ctx context.Context, n int) (time.Duration, error) {
			if err := over.request(op, size, n); err != nil {
				return 0, err
			}
			return timed(func() error { return over.exchange(ctx, msg, answer, n) })
		},
	}
}

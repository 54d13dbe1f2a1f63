package compare

import (
	"context"
	"errors"
	"os"
	"time"
)

// twoPipes is a pipe each way.
type twoPipes struct{ in, out *os.File }

func (p twoPipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p twoPipes) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p twoPipes) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

// openPipes makes this process's ends and returns those of the child.
func (c *Child) openPipes() ([]*os.File, error) {
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

// inheritedPipes are the child's ends.
func inheritedPipes() (twoPipes, error) {
	in, err := Inherited(FirstInherited)
	if err != nil {
		return twoPipes{}, err
	}
	out, err := Inherited(FirstInherited + 1)
	return twoPipes{in, out}, err
}

// NewPipe exchanges with the other process over two pipes.
func NewPipe(c *Child, op, size, batch int) *Contender {
	return newWire(NamePipe, c, c.pipe, op, size, batch)
}

// newWire exchanges with the other process over what it serves.
func newWire(name string, c *Child, over *wire, op, size, batch int) *Contender {
	msg, answer := Buffer(size), make([]byte, 8)
	if op == WireEcho {
		answer = make([]byte, size)
	}
	return &Contender{
		Name: name, Does: doesOf(op), Size: size, Batch: batch, CPU: c.CPU,
		Run: func(ctx context.Context, n int) (time.Duration, error) {
			if err := over.request(op, size, n); err != nil {
				return 0, err
			}
			return Timed(func() error { return over.exchange(ctx, msg, answer, n) })
		},
	}
}

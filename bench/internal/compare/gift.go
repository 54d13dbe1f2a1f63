package compare

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// NameHosts is the echo of another host of a shared device.
const NameHosts = "nfcomms Send+Receive, other process"

// doesGive is memory that the other process reads where it lies, and its answer.
const doesGive = "there in place, an answer"

// NameGift is memory of a size that is given to another process, which gives it back.
func NameGift(size int) string {
	return "nfcomms SendRegion of " + cli.SizeText(size) + ", other process"
}

// NameInPlace is memory of a size that a program in C hands to its other process where it lies.
func NameInPlace(library string, size int) string {
	return library + " in C, " + cli.SizeText(size) + " in place, other process"
}

// giftCommand is the hidden command of the other host.
const giftCommand = "gift-serve"

func newGiftServe() *cobra.Command {
	return &cobra.Command{
		Use:    giftCommand + " ADDRESS NAME",
		Short:  "Give memory back to another nfbench that listens on a device",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE:   func(cmd *cobra.Command, args []string) error { return serveGifts(cmd.Context(), args[0], args[1]) },
	}
}

// serveGifts answers on two channels to a listener until they close.
func serveGifts(ctx context.Context, address, name string) (err error) {
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	gifts, err := dev.Dial(ctx, name)
	if err != nil {
		return err
	}
	echo, err := dev.Dial(ctx, name)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- untilClosed(func() error { return giveBack(ctx, gifts) }) }()
	err = untilClosed(func() error { return sendBack(ctx, echo) })
	return errors.Join(err, <-ended)
}

// untilClosed repeats a call until its channel is closed.
func untilClosed(call func() error) error {
	for {
		if err := call(); errors.Is(err, nfcomms.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// giveBack takes memory, answers its first word, and gives it back.
func giveBack(ctx context.Context, ch *nfcomms.Channel) error {
	r, err := ch.ReceiveRegion(ctx)
	if err != nil {
		return err
	}
	word := r.Bytes()[:8]
	binary.LittleEndian.PutUint64(word, ^binary.LittleEndian.Uint64(word))
	return ch.SendRegion(ctx, r)
}

// sendBack returns a message. An empty one is answered by the processor time.
func sendBack(ctx context.Context, ch *nfcomms.Channel) error {
	var msg [MessageSize]byte
	n, err := ch.Receive(ctx, msg[:])
	if err == nil && n == 0 {
		n = 8
		binary.LittleEndian.PutUint64(msg[:], uint64(cli.CPUTime()))
	}
	if err == nil {
		err = ch.Send(ctx, msg[:n])
	}
	return err
}

// Gifts is another process that is a host of the same device.
type Gifts struct {
	dev         *nfcomms.Device
	cmd         *exec.Cmd
	gifts, echo *nfcomms.Channel
	waited      func() error
}

// StartGifts starts that process, and connects to it.
func StartGifts(ctx context.Context, dev *nfcomms.Device) (*Gifts, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("nfbench.%d", os.Getpid())
	l, err := dev.Listen(ctx, name)
	if err != nil {
		return nil, err
	}
	g := &Gifts{dev: dev, cmd: subprocess.Command(ctx, self, giftCommand, dev.Info().Address, name)}
	g.cmd.Stderr = os.Stderr
	if err := g.cmd.Start(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	g.waited = sync.OnceValue(g.cmd.Wait)
	connects, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it may end before it connects
		_ = g.waited()
		cancel()
	}()
	g.gifts, err = l.Accept(connects)
	if err == nil {
		g.echo, err = l.Accept(connects)
	}
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start another host: %w", err), g.Close())
	}
	return g, nil
}

// Close ends the other process.
func (g *Gifts) Close() error {
	var errs []error
	for _, ch := range []*nfcomms.Channel{g.gifts, g.echo} {
		if ch != nil {
			errs = append(errs, ch.Close())
		}
	}
	return errors.Join(append(errs, g.waited())...)
}

// cpu is the processor time of both hosts.
func (g *Gifts) cpu() (time.Duration, error) {
	var word [8]byte
	err := g.echo.Send(context.Background(), nil)
	if err == nil {
		_, err = g.echo.Receive(context.Background(), word[:])
	}
	return cli.CPUTime() + time.Duration(binary.LittleEndian.Uint64(word[:])), err
}

// Echo sends a message to the other host and takes it back.
func (g *Gifts) Echo() *Contender {
	msg := Buffer(MessageSize)
	return &Contender{
		Name: NameHosts, Does: DoesEcho, Size: MessageSize, Batch: SmallBatch, CPU: g.cpu,
		Run: func(ctx context.Context, n int) (time.Duration, error) {
			return Timed(func() error {
				for range n {
					if err := g.echo.Send(ctx, msg); err != nil {
						return err
					}
					if _, err := g.echo.Receive(ctx, msg); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// Gift gives memory to the other host, which reads and writes a word of it and gives it back.
func (g *Gifts) Gift(size int) (*Contender, error) {
	r, err := g.dev.Alloc(size)
	if err != nil {
		return nil, err
	}
	asked := uint64(0)
	there := func(ctx context.Context) (err error) {
		asked++
		binary.LittleEndian.PutUint64(r.Bytes(), asked)
		if err = g.gifts.SendRegion(ctx, r); err == nil {
			r, err = g.gifts.ReceiveRegion(ctx)
		}
		if err == nil && binary.LittleEndian.Uint64(r.Bytes()) != ^asked {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return &Contender{
		Name: NameGift(size), Does: doesGive, Size: size, Batch: 1, CPU: g.cpu,
		Run: func(ctx context.Context, n int) (time.Duration, error) {
			return Timed(func() error {
				for range n {
					if err := there(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Close: func() error {
			if r == nil {
				return nil
			}
			return r.Close()
		},
	}, nil
}

// InPlace are contenders of the programs whose messages are written and read where they lie.
func (all Natives) InPlace(size int) (there []*Contender) {
	for _, p := range all.There() {
		if p.Library.inPlace {
			c := p.Contender("place", doesGive, size, 1)
			c.Name = NameInPlace(p.Library.Name, size)
			there = append(there, c)
		}
	}
	return there
}

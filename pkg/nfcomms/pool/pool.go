package pool

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Options describe a pool. All fields but Program may be zero.
type Options struct {
	// Images are loaded before the processes start, as those of a Supervisor.
	Images [][]byte
	// Program is the program of every process. Port 0 takes the input and gives the answer. First has
	// to be 0: the device chooses the targets, and spreads the processes over its islands.
	Program nfcomms.Program
	// Processes is the number of processes. Zero means one for each island of the device.
	Processes int
	// Queue is the number of callers that may wait for a process. Zero means 1024; with a negative
	// number none may wait.
	Queue int
	// Timeout bounds an exchange from the moment at which the caller has a process. A process that
	// exceeds it is replaced. Zero means 10 s.
	Timeout time.Duration
	// Attempts is the number of processes that an exchange is tried on. Zero means 3.
	Attempts int
	// Transfers sends every input of Do as a transfer. Otherwise an input of up to
	// nfcomms.MessageSize bytes is sent as a message.
	Transfers bool
	// Idempotent allows to repeat an exchange although a process may have taken its input before.
	Idempotent bool
	// Logger receives why processes were replaced. Nil discards it.
	Logger *slog.Logger
}

var errClosed = fmt.Errorf("pool %w", nfcomms.ErrClosed)

// Operations, as OpError.Op has them.
const (
	opNew      = "start pool"
	opExchange = "exchange"
	opResize   = "resize pool"
)

// Pool is a number of processes of one program. All methods are safe for concurrent use.
type Pool struct {
	dev     *nfcomms.Device
	o       Options
	queue   queue
	started chan struct{} // closed when the first process runs
	ended   chan struct{} // closed when no process is left
	err     error         // set before ended is closed: why calls fail
	resized chan struct{} // holds a token when size changed
	closing context.Context
	end     context.CancelFunc
	start   sync.Once
	size    atomic.Int64
	counts
}

// New loads the images, starts the processes and returns when the first of them runs. ctx bounds New
// alone: the pool lasts until Close, or until the device is closed. Errors are those of Load and Run
// that no second try can mend, ErrInvalid for options that make no sense, and ErrWithdrawn.
func New(ctx context.Context, dev *nfcomms.Device, o Options) (*Pool, error) {
	if o.Processes < 0 || o.Program.First != 0 || o.Timeout < 0 || o.Attempts < 0 {
		return nil, wrap(opNew, fmt.Errorf("%d processes, first target %v, time-out %v, %d attempts: %w",
			o.Processes, o.Program.First, o.Timeout, o.Attempts, nfcomms.ErrInvalid))
	}
	o.Queue = cmp.Or(o.Queue, 1024)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Attempts = cmp.Or(o.Attempts, 3)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pool{
		dev: dev, o: o,
		started: make(chan struct{}), ended: make(chan struct{}), resized: make(chan struct{}, 1),
	}
	p.size.Store(int64(cmp.Or(o.Processes, dev.Info().Islands, 1)))
	p.closing, p.end = context.WithCancel(context.Background())
	go p.run()
	select {
	case <-p.started:
		return p, nil
	case <-p.ended:
		return nil, wrap(opNew, p.err)
	case <-ctx.Done():
		p.end()
		<-p.ended
		return nil, wrap(opNew, &nfcomms.WithdrawnError{Cause: ctx.Err()})
	}
}

// run keeps the pool running until it is closed, or cannot continue.
func (p *Pool) run() {
	defer close(p.ended)
	s := nfcomms.Supervisor{Images: p.o.Images, Logger: p.o.Logger, MinWait: minWait, MaxWait: maxWait}
	p.err = s.Run(p.closing, p.dev, p.generation)
	if p.closing.Err() != nil {
		p.err = errClosed
	}
	p.end()
}

// Close ends the pool: callers that wait, and exchanges under way, end with ErrClosed. It returns
// when all processes have ended. It is idempotent.
func (p *Pool) Close() error {
	p.end()
	<-p.ended
	return nil
}

// Resize changes the number of processes, at least one. It returns at once: processes that are too
// many end after their exchange. ErrInvalid for less than one, ErrClosed after the end of the pool.
func (p *Pool) Resize(processes int) error {
	if processes < 1 {
		return wrap(opResize, fmt.Errorf("%d processes: %w", processes, nfcomms.ErrInvalid))
	}
	select {
	case <-p.ended:
		return wrap(opResize, p.err)
	default:
	}
	p.size.Store(int64(processes))
	select {
	case p.resized <- struct{}{}:
	default: // the token that is there covers this change, too
	}
	return nil
}

// wrap gives an error of an operation its context; nil stays nil.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &nfcomms.OpError{Op: op, Err: err}
}

package linear

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	_ "github.com/nfcomms/nfcomms/internal/sim"
)

var (
	calls = flag.Int("calls", 100_000, "calls of TestLinearizable")
	seed  = flag.Uint64("seed", 1, "seed of their contexts")
)

const (
	channels = 4
	callers  = 3 // of each kind, of a channel
)

// input is a call of a channel.
type input struct {
	channel int
	send    uint64 // the message; 0: a receive
}

// echo is the specification: a process that reads a message and writes it back before it reads the
// next. Its state is the message that it has, 0 for none; the output of a call is the message, or 0
// for a call that was taken back.
var echo = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, channels)
		for _, o := range history {
			c := o.Input.(input).channel
			parts[c] = append(parts[c], o)
		}
		return parts
	},
	Init: func() any { return uint64(0) },
	Step: func(state, in, out any) (bool, any) {
		held, message := state.(uint64), out.(uint64)
		switch {
		case message == 0:
			return true, state
		case in.(input).send != 0:
			return held == 0, message
		default:
			return held == message, uint64(0)
		}
	},
	DescribeOperation: func(in, out any) string {
		if m := in.(input).send; m != 0 {
			return fmt.Sprintf("send(%d) = %d", m, out)
		}
		return fmt.Sprintf("receive() = %d", out)
	},
}

// recorder collects a history.
type recorder struct {
	begin time.Time
	left  atomic.Int64
	next  atomic.Uint64 // message

	mu      sync.Mutex
	history []porcupine.Operation
}

// TestLinearizable: several senders and receivers of each of some channels, whose contexts end at any
// time, see what one caller at a time could have seen.
func TestLinearizable(t *testing.T) {
	dev, err := bridge.Open(t.Context(), "sim:", nil)
	require.NoError(t, err)
	defer dev.Close()
	r := &recorder{begin: time.Now()}
	r.left.Store(int64(*calls))
	var all sync.WaitGroup
	for c := range channels {
		p, err := dev.Start(t.Context(), bridge.Program{Name: "loopback", Targets: 1})
		require.NoError(t, err)
		ch, err := dev.Subscribe(t.Context(), p.First)
		require.NoError(t, err)
		for i := range 2 * callers {
			random := rand.New(rand.NewPCG(*seed, uint64(c*2*callers+i)))
			all.Go(func() {
				for r.left.Add(-1) >= 0 {
					if err := r.call(t.Context(), ch, input{channel: c}, i < callers, c*2*callers+i, random); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	done := 0
	for _, o := range r.history {
		if o.Output.(uint64) != 0 {
			done++
		}
	}
	require.Greater(t, done, *calls/20, "calls that were not taken back")
	begin := time.Now()
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(echo, r.history, 5*time.Minute), "-seed %d", *seed)
	t.Logf("%d calls, %d of them done, checked in %v", len(r.history), done, time.Since(begin))
}

// call makes a call, whose context ends soon, and records it.
func (r *recorder) call(ctx context.Context, ch bridge.Channel, in input, send bool, client int, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(int(300*time.Microsecond))))
	defer cancel()
	var buf [8]byte
	if send {
		in.send = r.next.Add(1)
		binary.LittleEndian.PutUint64(buf[:], in.send)
	}
	o := porcupine.Operation{ClientId: client, Input: in, Output: uint64(0), Call: int64(time.Since(r.begin))}
	var err error
	if send {
		err = ch.Send(ctx, buf[:])
	} else {
		_, err = ch.Receive(ctx, buf[:])
	}
	o.Return = int64(time.Since(r.begin))
	switch {
	case err == nil:
		o.Output = binary.LittleEndian.Uint64(buf[:])
	case errors.Is(err, bridge.ErrBusy): // one call receives at a time
		r.left.Add(1)
		runtime.Gosched()
		return nil
	case !errors.Is(err, bridge.ErrWithdrawn) && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	r.mu.Lock()
	r.history = append(r.history, o)
	r.mu.Unlock()
	return nil
}

// TestSpecificationRefuses: what a channel must not do is no history of the specification.
func TestSpecificationRefuses(t *testing.T) {
	op := func(send, out uint64, from, to int64) porcupine.Operation {
		return porcupine.Operation{Input: input{send: send}, Output: out, Call: from, Return: to}
	}
	legal := []porcupine.Operation{op(1, 1, 0, 9), op(0, 1, 2, 5), op(2, 0, 3, 6), op(0, 0, 6, 8)}
	require.True(t, porcupine.CheckOperations(echo, legal))
	for name, history := range map[string][]porcupine.Operation{
		"a message comes twice":           {op(1, 1, 0, 1), op(0, 1, 2, 3), op(0, 1, 4, 5)},
		"one comes that was taken back":   {op(1, 0, 0, 1), op(0, 1, 2, 3)},
		"one comes before it was sent":    {op(0, 1, 0, 1), op(1, 1, 2, 3)},
		"one is lost":                     {op(1, 1, 0, 1), op(2, 2, 2, 3), op(0, 2, 4, 5)},
		"two are held":                    {op(1, 1, 0, 1), op(2, 2, 2, 3), op(0, 1, 4, 5), op(0, 2, 6, 7)},
		"two are reordered":               {op(1, 1, 0, 1), op(2, 2, 2, 9), op(0, 2, 3, 4), op(0, 1, 5, 6)},
		"a receive returns what is there": {op(1, 1, 0, 1), op(0, 1, 2, 3), op(0, 2, 4, 5)},
	} {
		require.False(t, porcupine.CheckOperations(echo, history), name)
	}
}

//go:build cgo

package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// cancelSenders share a half in TestMillionCancels.
const cancelSenders = 4

// cancels is the ledger of both sides, by the id in each message.
type cancels struct {
	ch        bridge.Channel
	under     [cancelSenders]atomic.Pointer[context.CancelFunc]
	delivered []bool // as the call reported
	received  []byte // how often the process echoed it
}

// send sends the ids of sender i, and before each cancels the call of its neighbour, wherever that is.
func (c *cancels) send(ctx context.Context, i int) error {
	var msg [8]byte
	for id := i; id < len(c.delivered); id += cancelSenders {
		binary.LittleEndian.PutUint64(msg[:], uint64(id))
		ctx, cancel := context.WithCancel(ctx)
		c.under[i].Store(&cancel)
		if other := c.under[(i+1)%cancelSenders].Swap(nil); other != nil {
			(*other)()
		}
		err := c.ch.Send(ctx, msg[:])
		cancel()
		if err != nil && !errors.Is(err, bridge.ErrWithdrawn) {
			return err
		}
		c.delivered[id] = err == nil
	}
	return nil
}

// receive takes echoes until a message without an id.
func (c *cancels) receive(ctx context.Context) error {
	var buf [abi.PayloadSize]byte
	for {
		n, err := c.ch.Receive(ctx, buf[:])
		if err != nil || n == 0 {
			return err
		}
		c.received[binary.LittleEndian.Uint64(buf[:])]++
	}
}

// TestMillionCancels: calls are cancelled while they wait for their turn, while the device has the
// message, and as its process takes it. Each message that a call reported as delivered was taken once,
// and no other one.
func TestMillionCancels(t *testing.T) {
	calls := bridgetest.Scaled(1_000_000)
	e := bridgetest.NewEnv(t)
	dev := openDevice(t, "")
	defer func() { require.NoError(t, dev.Close()) }()
	c := &cancels{ch: e.Ports(dev, "loopback", 1)[0], delivered: make([]bool, calls), received: make([]byte, calls)}
	received := bridgetest.Call("receiver", func() error { return c.receive(e.Ctx()) })
	var wg sync.WaitGroup
	for i := range cancelSenders {
		wg.Go(func() {
			if err := c.send(e.Ctx(), i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.ch.Send(e.Ctx(), nil))
	require.NoError(t, e.Wait(received))
	taken := 0
	for id, times := range c.received {
		if c.delivered[id] != (times == 1) || times > 1 {
			t.Fatalf("message %d: delivered %v, taken %d times", id, c.delivered[id], times)
		}
		taken += int(times)
	}
	t.Logf("%d of %d delivered", taken, calls)
	require.NotZero(t, taken)
	require.Less(t, taken, calls)
}

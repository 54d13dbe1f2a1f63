//go:build cgo

package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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

// cancels is the ledger of both sides, by sender and the number of its message.
type cancels struct {
	ch        bridge.Channel
	under     [cancelSenders]atomic.Pointer[context.CancelFunc]
	cancelled atomic.Int64          // calls whose context ended before they did
	delivered [cancelSenders][]bool // as the call reported
	received  [cancelSenders][]byte // how often the process echoed it
}

// send sends messages of sender i until so many calls were cancelled, and before each cancels the call of
// its neighbour, wherever that is.
func (c *cancels) send(ctx context.Context, i int, most int64) error {
	var msg [8]byte
	for n := 0; c.cancelled.Load() < most; n++ {
		binary.LittleEndian.PutUint64(msg[:], uint64(n*cancelSenders+i))
		ctx, cancel := context.WithCancel(ctx)
		c.under[i].Store(&cancel)
		if other := c.under[(i+1)%cancelSenders].Swap(nil); other != nil {
			(*other)()
		}
		err := c.ch.Send(ctx, msg[:])
		if ctx.Err() != nil {
			c.cancelled.Add(1)
		}
		cancel()
		if err != nil && !errors.Is(err, bridge.ErrWithdrawn) {
			return err
		}
		c.delivered[i] = append(c.delivered[i], err == nil)
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
		id := int(binary.LittleEndian.Uint64(buf[:]))
		i, k := id%cancelSenders, id/cancelSenders
		for len(c.received[i]) <= k {
			c.received[i] = append(c.received[i], 0)
		}
		c.received[i][k]++
	}
}

// compare holds the ledgers against each other, and counts what was delivered and all calls.
func (c *cancels) compare() (taken, calls int, err error) {
	for i, delivered := range c.delivered {
		if len(c.received[i]) > len(delivered) {
			return 0, 0, fmt.Errorf("sender %d: message %d was taken, and never sent", i, len(c.received[i])-1)
		}
		for n, reported := range delivered {
			times := byte(0)
			if n < len(c.received[i]) {
				times = c.received[i][n]
			}
			if reported != (times == 1) || times > 1 {
				return 0, 0, fmt.Errorf("sender %d: message %d: delivered %v, taken %d times", i, n, reported, times)
			}
			taken += int(times)
		}
		calls += len(delivered)
	}
	return taken, calls, nil
}

// TestMillionCancels: calls are cancelled while they wait for their turn, while the device has the
// message, and as its process takes it, a million of them. Each message that a call reported as delivered
// was taken once, and no other one.
func TestMillionCancels(t *testing.T) {
	most := int64(bridgetest.Scaled(1_000_000))
	e := bridgetest.NewEnv(t)
	dev := openDevice(t, "")
	defer func() { require.NoError(t, dev.Close()) }()
	c := &cancels{ch: e.Ports(dev, "loopback", 1)[0]}
	received := bridgetest.Call("receiver", func() error { return c.receive(e.Ctx()) })
	var wg sync.WaitGroup
	for i := range cancelSenders {
		wg.Go(func() {
			if err := c.send(e.Ctx(), i, most); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.ch.Send(e.Ctx(), nil))
	require.NoError(t, e.Wait(received))
	taken, calls, err := c.compare()
	require.NoError(t, err)
	t.Logf("%d calls, %d cancelled, %d delivered", calls, c.cancelled.Load(), taken)
	require.GreaterOrEqual(t, c.cancelled.Load(), most)
	require.NotZero(t, taken)
	require.Less(t, taken, calls)
}

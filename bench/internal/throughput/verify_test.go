package throughput

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// A device that loses or changes data and says nothing of it: "flawed:KIND" is
// sim: with a flaw. Each is a mistake that a device or a back end could make.
func init() {
	bridge.Register("flawed", func(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
		dev, err := bridge.Open(ctx, "sim:", o)
		if err != nil {
			return nil, err
		}
		return &flawedDevice{Device: dev, flaw: a.Path}, nil
	})
}

type flawedDevice struct {
	bridge.Device
	flaw string
}

func (d *flawedDevice) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	ch, err := d.Device.Subscribe(ctx, t)
	if err != nil {
		return nil, err
	}
	return &flawedChannel{Channel: ch, flaw: d.flaw}, nil
}

// flawedChannel has the flaw in its later calls: the first test is not recorded.
type flawedChannel struct {
	bridge.Channel
	flaw string

	mu    sync.Mutex // guards what follows
	sends int
	got   int
	last  map[int][]byte // by size: what was sent before
}

// late is the number of calls before a flaw shows.
const late = 30

func (c *flawedChannel) SendInd(ctx context.Context, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = make(map[int][]byte)
	}
	before := c.last[len(data)]
	c.last[len(data)] = slices.Clone(data)
	c.sends++
	switch {
	case c.sends < late:
	case c.flaw == "bit to device":
		data = slices.Clone(data)
		data[len(data)/2] ^= 1
	case c.flaw == "stale" && before != nil: // what the device had from the last one
		data = before
	case c.flaw == "pages" && len(data) >= 2*abi.PageSize:
		data = slices.Concat(data[abi.PageSize:2*abi.PageSize], data[:abi.PageSize], data[2*abi.PageSize:])
	}
	return c.Channel.SendInd(ctx, data)
}

func (c *flawedChannel) ReceiveInd(ctx context.Context, data []byte) error {
	err := c.Channel.ReceiveInd(ctx, data)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got++; c.got >= late && c.flaw == "bit to host" {
		data[len(data)-1] ^= 0x80
	}
	return err
}

func (c *flawedChannel) Send(ctx context.Context, msg []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sends++; c.sends == late && c.flaw == "lost message" {
		return nil
	}
	return c.Channel.Send(ctx, msg)
}

func (c *flawedChannel) Receive(ctx context.Context, buf []byte) (int, error) {
	n, err := c.Channel.Receive(ctx, buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got++; c.got == late && c.flaw == "changed message" {
		buf[n-1]++
	}
	return n, err
}

func TestThroughputNoticesWrongBytes(t *testing.T) {
	for flaw, says := range map[string]string{
		"bit to device": "data came back changed", "bit to host": "data came back changed",
		"stale": "data came back changed", "pages": "data came back changed",
		"lost message": "direct messages of", "changed message": "direct message 9 came changed",
	} {
		t.Run(flaw, func(t *testing.T) {
			code, out, errs := clitest.Run(t.Context(), append(tinyThroughput, "--address", "flawed:"+flaw)...)
			require.Equal(t, cli.ExitFailed, code, out)
			require.Contains(t, errs, says)
			require.Empty(t, out, "a report of wrong bytes")
		})
	}
	_ = clitest.MustRun(t, append(tinyThroughput, "--address", "flawed:none")...)
}

func TestThroughputClaimsWhatItCompared(t *testing.T) {
	whole, part := exchange{compared: 10}, exchange{compared: 9}
	require.True(t, (&point{tests: []exchange{whole, whole}}).report(0, 10).Verified)
	require.False(t, (&point{tests: []exchange{whole, part}}).report(0, 10).Verified)
	require.False(t, (&point{}).report(0, 10).Verified)
	r := &Report{Points: []Point{{Verified: true}, {}}}
	require.Contains(t, r.Verification(), "NOT every byte")
}

package bridgetest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// pool deals devices that are there to cases, which may need several at once.
type pool struct {
	mu   sync.Mutex
	free []string // addresses without options
}

// pooled gives its address back when it closes.
type pooled struct {
	bridge.Device
	once sync.Once
	give func()
}

func (p *pooled) Close() error {
	err := p.Device.Close()
	p.once.Do(p.give)
	return err
}

// Pool opens the devices of these addresses, one at a time each, in the shape that is asked for: each
// case has a fresh one.
func Pool(addresses []string) OpenFunc { return (&pool{free: addresses}).open }

func (p *pool) open(t *testing.T, options string) bridge.Device {
	t.Helper()
	p.mu.Lock()
	require.NotEmpty(t, p.free, "too few devices")
	address := p.free[0]
	p.free = p.free[1:]
	p.mu.Unlock()
	if options == "" {
		options = "managers=8"
	}
	dev, err := bridge.Open(context.Background(), address+"?"+options, nil)
	require.NoError(t, err)
	return &pooled{Device: dev, give: func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, address)
	}}
}

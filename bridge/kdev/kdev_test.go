package kdev

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake opens a device of a fake module; nil without the C compiler that its
// firmware needs.
var fake func(t *testing.T, options string) bridge.Device

// realDevices are the addresses to test, without options; empty where there is
// no module.
func realDevices() []string {
	if list := os.Getenv("NFC_KDEV"); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// pool deals the real devices to tests that need several at once.
type pool struct {
	mu   sync.Mutex
	free []string
}

// pooled gives its address back when it closes.
type pooled struct {
	bridge.Device
	once  sync.Once
	close func()
}

func (p *pooled) Close() error {
	err := p.Device.Close()
	p.once.Do(p.close)
	return err
}

// open resets a device to the shape asked for: each test has a fresh one.
func (p *pool) open(t *testing.T, options string) bridge.Device {
	t.Helper()
	p.mu.Lock()
	require.NotEmpty(t, p.free, "NFC_KDEV=%s names too few devices", os.Getenv("NFC_KDEV"))
	address := p.free[0]
	p.free = p.free[1:]
	p.mu.Unlock()
	if options == "" {
		options = "managers=8"
	}
	dev, err := bridge.Open(context.Background(), address+"?"+options, nil)
	require.NoError(t, err)
	return &pooled{Device: dev, close: func() {
		p.mu.Lock()
		p.free = append(p.free, address)
		p.mu.Unlock()
	}}
}

// TestConformance runs every rule of the contract on the devices that NFC_KDEV
// names, "dev:0,dev:1", or on a fake module.
func TestConformance(t *testing.T) {
	if real := realDevices(); real != nil {
		bridgetest.Run(t, (&pool{free: real}).open)
		return
	}
	require.NotNil(t, fake, "build with CGO_ENABLED=1, or name devices in NFC_KDEV")
	bridgetest.Run(t, fake)
}

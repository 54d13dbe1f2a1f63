package kdev

import (
	"context"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake opens a device of a fake module; nil without the C compiler that its
// firmware needs.
var fake func(t *testing.T, options string) bridge.Device

// devices are the addresses to test, without options; none where there is no
// module.
var devices = flag.String("kdev", os.Getenv("NFC_KDEV"), "test these devices, such as dev:0,dev:1 (default $NFC_KDEV)")

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
	require.NotEmpty(t, p.free, "-kdev=%s names too few devices", *devices)
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

// opener opens real devices, or those of a fake module.
func opener(t *testing.T) bridgetest.OpenFunc {
	t.Helper()
	if *devices != "" {
		return (&pool{free: strings.Split(*devices, ",")}).open
	}
	require.NotNil(t, fake, "build with CGO_ENABLED=1, or name devices with -kdev")
	return fake
}

// TestConformance runs every rule of the contract.
func TestConformance(t *testing.T) { bridgetest.Run(t, opener(t)) }

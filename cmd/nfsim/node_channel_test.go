//go:build cgo

package main

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
)

// pair is two nodes, each a process; clients connect to the near one.
type pair struct {
	far, near *childProcess
	farArgs   []string // to start it again at its address
	path      string   // of the near one's socket
	farPath   string   // of the far one's
}

// startNodes starts two nodes whose devices are of a shape.
func startNodes(t *testing.T, shape ...string) *pair {
	t.Helper()
	a, b := newCredentials(t, "a"), newCredentials(t, "b")
	p := &pair{path: filepath.Join(t.TempDir(), "s"), farPath: filepath.Join(t.TempDir(), "s")}
	node := func(c credentials, place string) []string {
		return append([]string{"--node", place, "--torus", "2x1x1", "--certificate", c.cert, "--key", c.key}, shape...)
	}
	p.farArgs = append(node(b, "1.0.0"), "--shm", p.farPath, "--peer", "0.0.0="+a.print)
	p.far = startChild(t, "device", append(p.farArgs, "--listen", "127.0.0.1:0")...)
	require.True(t, p.far.says.Scan())
	address := strings.TrimPrefix(p.far.says.Text(), "listening ")
	p.farArgs = append(p.farArgs, "--listen", address)
	p.near = startChild(t, "device", append(node(a, "0.0.0"), "--shm", p.path, "--peer", "1.0.0="+b.print,
		"--link", "x+="+address, "--link", "x-="+address)...)
	return p
}

// open makes the test a host of the far node's device, once there is a way to it.
func (p *pair) open(t *testing.T) (dev bridge.Device) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		dev, err = bridge.Open(context.Background(), "shm:"+p.path+"?node=1.0.0", nil)
		if !errors.Is(err, bridge.ErrDeviceLost) {
			require.NoError(t, err)
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return dev
}

// pairs returns what finds two nodes with the options of a device's address; those of another
// shape than the usual are processes of their own.
func pairs(t *testing.T) func(t *testing.T, options string) *pair {
	usual := startNodes(t)
	return func(t *testing.T, options string) *pair {
		t.Helper()
		values, err := url.ParseQuery(options)
		require.NoError(t, err)
		var shape []string
		for name := range values {
			shape = append(shape, "--"+name, values.Get(name))
		}
		if len(shape) == 0 {
			return usual
		}
		return startNodes(t, shape...)
	}
}

// openNear makes the test a host of the near node's device, once it knows a way to the far one.
func (p *pair) openNear(t *testing.T) bridge.Device {
	t.Helper()
	require.NoError(t, p.open(t).Close())
	dev, err := bridge.Open(t.Context(), "shm:"+p.path, nil)
	require.NoError(t, err)
	return dev
}

// openOnNodes opens far devices.
func openOnNodes(t *testing.T) bridgetest.OpenFunc {
	nodes := pairs(t)
	return func(t *testing.T, query string) bridge.Device {
		t.Helper()
		dev := nodes(t, query).open(t)
		require.Equal(t, abi.MakeNode(1, 0, 0), dev.Info().Node)
		return spectest.Verified(t, dev)
	}
}

// TestConformanceOfNodes runs what the contract says of transfers on a device whose node is
// another process.
func TestConformanceOfNodes(t *testing.T) {
	bridgetest.RunTransfers(t, openOnNodes(t), "huge/list-number-wraps", "transfer/64MiB") // as shorter ones
}

// TestChannelsBesideEachOther: clients of one node have channels to the device of another, which
// knows them apart, and which runs no code of theirs.
func TestChannelsBesideEachOther(t *testing.T) {
	p := startNodes(t)
	buf := make([]byte, 300_000)
	var all []bridge.Device
	for i := range 3 {
		dev := p.open(t)
		all = append(all, dev)
		require.False(t, dev.Info().CanLoad)
		_, err := dev.Load(t.Context(), []byte("\x7fELF"))
		require.ErrorIs(t, err, bridge.ErrNotSupported)
		require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), buf, uint64(i)))
	}
	near := openShared(t, p.path)
	require.NoError(t, echo(t.Context(), port(t, near, "loopback"), buf, 7))
	require.NoError(t, all[1].Close())
	require.NoError(t, echo(t.Context(), port(t, all[0], "loopback"), buf, 8))
	require.NoError(t, all[2].Reset(t.Context()))
	require.NoError(t, echo(t.Context(), port(t, all[2], "loopback"), buf, 9))
	require.NoError(t, all[0].Close())
	require.NoError(t, all[2].Close())
}

// TestBadNodesOfChannels: each is one typed error.
func TestBadNodesOfChannels(t *testing.T) {
	p := startNodes(t)
	require.NoError(t, p.open(t).Close())
	for _, bad := range []string{"", "1", "1.0", "1.0.0.0", "256.0.0", "01.0.0", "x"} {
		_, err := bridge.Open(t.Context(), "shm:"+p.path+"?node="+bad, nil)
		require.ErrorIs(t, err, bridge.ErrInvalid, bad)
	}
	for _, bad := range []string{"2.0.0", "255.255.255"} {
		_, err := bridge.Open(t.Context(), "shm:"+p.path+"?node="+bad, nil)
		require.ErrorIs(t, err, bridge.ErrNotSubscribed, bad)
	}
	_, err := bridge.Open(t.Context(), shareDevice(t, "")+"?node=1.0.0", nil)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
}

// TestNodeKilled: a call that waits for a killed process fails, as with any device. Received bytes are
// those that were sent. When the process is there again, a reset is enough.
func TestNodeKilled(t *testing.T) {
	e := bridgetest.NewEnv(t)
	p := startNodes(t)
	dev := p.open(t)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	waits := port(t, dev, "hold")
	waiting := bridgetest.Call("send", func() error { return waits.Send(e.Ctx(), []byte("?")) })
	e.UntilBlocked(dev, 1)
	ch := port(t, dev, "loopback")
	moving := make(chan struct{})
	books := bridgetest.Call("ledger", func() error {
		buf := make([]byte, 1<<20)
		for round := uint64(1); ; round++ {
			if err := echo(e.Ctx(), ch, buf, round); err != nil {
				return err
			}
			if round == 3 {
				close(moving)
			}
		}
	})
	<-moving
	p.far.kill()
	require.ErrorIs(t, e.Wait(books), bridge.ErrDeviceLost)
	require.ErrorIs(t, e.Wait(waiting), bridge.ErrDeviceLost)
	require.ErrorIs(t, dev.Reset(e.Ctx()), bridge.ErrDeviceLost)
	near := openShared(t, p.path)
	require.NoError(t, echo(t.Context(), port(t, near, "loopback"), make([]byte, 5000), 3), "others do not notice")

	p.far = startChild(t, "device", p.farArgs...)
	e.Until("the node is there again", func() bool { return dev.Reset(e.Ctx()) == nil })
	require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), make([]byte, 300_000), 4))
}

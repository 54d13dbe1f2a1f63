//go:build cgo

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/rings"
	"github.com/nfcomms/nfcomms/pkg/program"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

// TestSharedRing: a process of a shared device reads from a ring of its client's what another process
// of that device, of another client, writes into it. The device maps the ring, and no more afterwards.
func TestSharedRing(t *testing.T) {
	const packets = 2000
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a watchdog
	defer cancel()
	image, err := program.Build(ctx, os.DirFS("../../pkg/nfcomms/rings/testdata"), program.Options{})
	require.NoError(t, err)
	address := shareDevice(t, "beat=1m")
	r, err := ring.Create(fmt.Sprintf("nfsim-test-%d", os.Getpid()), ring.Config{Packets: 5})
	require.NoError(t, err)
	defer r.Close()
	served := make(chan error, 2)
	run := func(name string, serve func(context.Context, *nfcomms.Device, *ring.Ring, *nfcomms.Instance) error) *nfcomms.Instance {
		dev, err := nfcomms.Open(ctx, address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		_, err = dev.Load(ctx, image)
		require.NoError(t, err)
		i, err := dev.Run(ctx, nfcomms.Program{Name: name, Targets: 2, Argument: packets})
		require.NoError(t, err)
		go func() {
			err := serve(ctx, dev, r, i)
			if err == nil && dev.Stats().Regions > 0 {
				err = fmt.Errorf("%d regions are left", dev.Stats().Regions)
			}
			served <- err
		}()
		return i
	}
	writer := run("writer", rings.ServeWriter)
	reader := run("reader", rings.ServeReader)
	var b [nfcomms.MessageSize]byte
	for _, i := range []*nfcomms.Instance{writer, reader} {
		_, err = i.Channels[1].Receive(ctx, b[:])
		require.NoError(t, err)
		require.Equal(t, uint64(packets), binary.LittleEndian.Uint64(b[:]))
	}
	require.NoError(t, <-served)
	require.NoError(t, <-served)
}

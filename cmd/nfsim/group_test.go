//go:build cgo

package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/pkg/group"
	members "github.com/nfcomms/nfcomms/pkg/group/process"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// TestSharedMembers: processes of a shared device exchange with each other as members of a group,
// which three hosts lend them their places in.
func TestSharedMembers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a watchdog
	defer cancel()
	image, err := program.Build(ctx, os.DirFS("../../pkg/group/process/testdata"), program.Options{})
	require.NoError(t, err)
	address := shareDevice(t, "beat=1m")
	const size = 3
	mesh := group.NewMesh(size)
	var all errgroup.Group
	for rank := range size {
		dev, err := nfcomms.Open(ctx, address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		_, err = dev.Load(ctx, image)
		require.NoError(t, err)
		i, err := dev.Run(ctx, nfcomms.Program{Name: "step", Argument: 12})
		require.NoError(t, err)
		all.Go(func() error {
			g, err := group.Join(ctx, mesh, group.Options{Rank: rank, Size: size, Algorithm: "isend"})
			if err != nil {
				return err
			}
			return members.Serve(ctx, g, i.Channels[0])
		})
	}
	require.NoError(t, all.Wait())
}

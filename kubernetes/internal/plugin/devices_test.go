package plugin

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDevicesOfADriver: another driver sees devices with what the daemon reports, sick ones too, until
// they are gone, and resets one.
func TestDevicesOfADriver(t *testing.T) {
	d := newDaemon(t)
	d.nodes["nic0"] = "1.0.0"
	d.cards(1)
	d.set("s", "shm:/run/s", failed, numa(1))
	d.set("sim0", "sim:", ready)
	client, err := Dial("unix:" + d.path)
	require.NoError(t, err)
	devices := NewDevices(Options{Client: client, Shares: Shares{Default: 3}, Sockets: []string{"/run"}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		devices.Follow(ctx)
	}()
	<-devices.Begun()
	list, changed := devices.List()
	require.Len(t, list, 2, "sim: is the daemon's own")
	require.Equal(t, Device{Name: "nic0", Healthy: true, Info: list[0].Info}, list[0])
	require.Equal(t, Device{Name: "s", Shares: 3, Info: list[1].Info}, list[1])
	require.EqualValues(t, 1, list[1].Info.GetBoard().GetNumaNode())
	given, err := devices.Describe("nic0")
	require.NoError(t, err)
	require.Equal(t, "/dev/nfcomms0", given.Edits.Nodes[0].Path)

	f, err := devices.Fabric(ctx, "nic0")
	require.NoError(t, err)
	require.Equal(t, "1.0.0", f.GetNode())
	f, err = devices.Fabric(ctx, "s")
	require.NoError(t, err)
	require.Nil(t, f)
	require.NoError(t, devices.Reset(ctx, "nic0"))
	require.Equal(t, map[string]int{"nic0": 1}, d.resets)

	d.remove("nic0")
	<-changed
	_, err = devices.Describe("nic0")
	require.ErrorIs(t, err, fs.ErrNotExist)
	cancel()
	<-ended
	_, err = devices.Fabric(ctx, "s")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, client.Close())
}

package kubernetes

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// daemon is a control plane whose devices are what a test says.
type daemon struct {
	nfcommsv1.UnimplementedDeviceServiceServer
	address string

	mu      sync.Mutex
	devices []*nfcommsv1.Device
	changed chan struct{}
	resets  int
}

// newDaemon serves two cards, nic0 and nic1, and sim0, which several share, with its socket below
// the folder that it returns.
func newDaemon(t *testing.T) (*daemon, string) {
	dir := t.TempDir()
	d := &daemon{address: "unix:" + filepath.Join(dir, "d"), changed: make(chan struct{})}
	shared := filepath.Join(dir, "s")
	for name, address := range map[string]string{"nic0": "dev:0", "nic1": "dev:1", "sim0": "shm:" + shared} {
		d.devices = append(d.devices, &nfcommsv1.Device{Name: "devices/" + name, Address: address, State: nfcommsv1.Device_STATE_READY})
	}
	device, err := net.Listen("unix", shared)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	l, err := net.Listen("unix", filepath.Join(dir, "d"))
	require.NoError(t, err)
	server := grpc.NewServer()
	nfcommsv1.RegisterDeviceServiceServer(server, d)
	go func() { _ = server.Serve(l) }() // until Stop
	t.Cleanup(server.Stop)
	return d, dir
}

// set changes the state of a device.
func (d *daemon) set(name string, state nfcommsv1.Device_State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, m := range d.devices {
		if m.GetName() == "devices/"+name {
			d.devices[i] = &nfcommsv1.Device{Name: m.GetName(), Address: m.GetAddress(), State: state}
		}
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// WatchDevices streams the devices as they are, and again after each change.
func (d *daemon) WatchDevices(_ *nfcommsv1.WatchDevicesRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchDevicesResponse]) error {
	for change := nfcommsv1.Change_CHANGE_SNAPSHOT; ; change = nfcommsv1.Change_CHANGE_UPDATED {
		d.mu.Lock()
		devices, bell := append([]*nfcommsv1.Device{}, d.devices...), d.changed
		d.mu.Unlock()
		for _, m := range devices {
			if err := stream.Send(&nfcommsv1.WatchDevicesResponse{Change: change, Device: m}); err != nil {
				return err
			}
		}
		if change == nfcommsv1.Change_CHANGE_SNAPSHOT {
			if err := stream.Send(&nfcommsv1.WatchDevicesResponse{Change: nfcommsv1.Change_CHANGE_SYNCED}); err != nil {
				return err
			}
		}
		select {
		case <-bell:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// ResetDevice counts.
func (d *daemon) ResetDevice(context.Context, *nfcommsv1.ResetDeviceRequest) (*nfcommsv1.ResetDeviceResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resets++
	return &nfcommsv1.ResetDeviceResponse{}, nil
}

func (d *daemon) resetCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resets
}

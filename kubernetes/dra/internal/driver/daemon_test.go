package driver

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// fakeDaemon is a daemon whose devices are what a test says.
type fakeDaemon struct {
	mu      sync.Mutex
	list    []plugin.Device
	places  map[string]string // nodes of a torus of 4x4x1
	changed chan struct{}
	resets  []string
	failing error // of Reset
	shares  map[string]fakeShare
	refuses error // of shares
}

// fakeShare is a share of a device, by its socket.
type fakeShare struct {
	device string
	limits shmwire.Limits
	socket net.Listener
}

// sharer makes shares without a device process, which keeps them until it ends.
func (f *fakeDaemon) sharer() sharer {
	return sharer{open: func(_ context.Context, device, path string, mode os.FileMode, l shmwire.Limits) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, is := f.shares[path]; is || f.refuses != nil {
			return f.refuses
		}
		_ = os.Remove(path)
		socket, err := net.ListenUnix(shmwire.Network, &net.UnixAddr{Name: path, Net: shmwire.Network})
		if err != nil {
			return err
		}
		socket.SetUnlinkOnClose(false)
		f.shares[path] = fakeShare{device, l, socket}
		return os.Chmod(path, mode)
	}, close: func(_ context.Context, path string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.refuses != nil {
			return f.refuses
		}
		if s, is := f.shares[path]; is {
			_ = s.socket.Close()
			delete(f.shares, path)
		}
		return os.Remove(path)
	}}
}

// restart ends the device process with its shares, whose sockets stay.
func (f *fakeDaemon) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.shares {
		_ = s.socket.Close()
	}
	clear(f.shares)
}

// newFake has a card and a device with two shares, 100 channels, and ten processes on each island.
func newFake() *fakeDaemon {
	f := &fakeDaemon{changed: make(chan struct{}), shares: make(map[string]fakeShare), places: map[string]string{"nic_0": "1.0.0"}}
	f.set(plugin.Device{Name: "nic_0", Healthy: true, Info: &nfcommsv1.Device{Address: "dev:0", Driver: "dev", Shape: shape}})
	f.set(plugin.Device{Name: "s", Healthy: true, Shares: 2, Info: &nfcommsv1.Device{Address: "shm:/run/s", Driver: "shm", Shape: &nfcommsv1.Shape{Channels: 100, Mailboxes: 8, Islands: 2, Contexts: 20}}})
	return f
}

// set adds a device or changes it.
func (f *fakeDaemon) set(d plugin.Device) {
	f.remove(d.Name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, d)
}

// sick changes whether a device is healthy.
func (f *fakeDaemon) sick(name string, is bool) {
	list, _ := f.List()
	i := slices.IndexFunc(list, func(d plugin.Device) bool { return d.Name == name })
	list[i].Healthy = !is
	f.set(list[i])
}

func (f *fakeDaemon) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = slices.DeleteFunc(slices.Clone(f.list), func(d plugin.Device) bool { return d.Name == name })
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeDaemon) Follow(ctx context.Context) { <-ctx.Done() }

func (f *fakeDaemon) Begun() <-chan struct{} {
	begun := make(chan struct{})
	close(begun)
	return begun
}

func (f *fakeDaemon) List() ([]plugin.Device, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list), f.changed
}

func (f *fakeDaemon) Describe(name string) (cdi.Device, error) {
	list, _ := f.List()
	for _, d := range list {
		if d.Name == name {
			return cdi.Device{Name: name, Edits: cdi.Edits{Env: []string{cdi.Variable(name) + "=" + d.Info.GetAddress()}}}, nil
		}
	}
	return cdi.Device{}, fs.ErrNotExist
}

func (f *fakeDaemon) Reset(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets = append(f.resets, name)
	return f.failing
}

func (f *fakeDaemon) Fabric(_ context.Context, name string) (*nfcommsv1.GetFabricResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if node := f.places[name]; node != "" {
		return &nfcommsv1.GetFabricResponse{Torus: "4x4x1", Node: node}, nil
	}
	return nil, nil
}

// newDriver returns a driver with the files of a folder, as one that starts there.
func newDriver(t *testing.T, f *fakeDaemon, dir string) *driver {
	noted, err := openCheckpoint(filepath.Join(dir, "checkpoint.json"))
	require.NoError(t, err)
	return &driver{devices: f, noted: noted, sharer: f.sharer(), Options: Options{
		Options: plugin.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), CDI: filepath.Join(dir, "cdi"), Reset: true}, Node: "n", State: dir, Memory: 256 << 20,
	}}
}

// uid is that of a claim.
func uid(name string) types.UID { return types.UID("uid-of-" + name) }

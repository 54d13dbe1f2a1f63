package plugin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is a control plane whose devices are what a test says.
type daemon struct {
	nfcommsv1.UnimplementedDeviceServiceServer
	nfcommsv1.UnimplementedFabricServiceServer
	path   string
	server *grpc.Server

	mu      sync.Mutex
	devices map[string]*nfcommsv1.Device
	nodes   map[string]string // of a fabric of 4x4x1
	watches map[chan *nfcommsv1.WatchDevicesResponse]bool
	resets  map[string]int
	failing error // of ResetDevice
}

func newDaemon(t *testing.T) *daemon {
	d := &daemon{
		path: filepath.Join(short(t), "d"), devices: make(map[string]*nfcommsv1.Device), nodes: make(map[string]string),
		watches: make(map[chan *nfcommsv1.WatchDevicesResponse]bool), resets: make(map[string]int),
	}
	d.begin(t)
	t.Cleanup(func() { d.server.Stop() })
	return d
}

// begin serves, also once more after an end of the server.
func (d *daemon) begin(t *testing.T) {
	d.serve(t, func(s *grpc.Server) {
		nfcommsv1.RegisterDeviceServiceServer(s, d)
		nfcommsv1.RegisterFabricServiceServer(s, d)
	})
}

func (d *daemon) serve(t *testing.T, register func(*grpc.Server)) {
	l, err := net.Listen("unix", d.path)
	require.NoError(t, err)
	d.server = grpc.NewServer()
	register(d.server)
	server := d.server
	go func() { _ = server.Serve(l) }()
}

// set adds a device or changes it.
func (d *daemon) set(name, address string, state nfcommsv1.Device_State, more ...func(*nfcommsv1.Device)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &nfcommsv1.Device{Name: "devices/" + name, Address: address, State: state, Epoch: 1}
	for _, f := range more {
		f(m)
	}
	d.devices[name] = m
	d.send(nfcommsv1.Change_CHANGE_UPDATED, m)
}

func (d *daemon) remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.send(nfcommsv1.Change_CHANGE_DELETED, d.devices[name])
	delete(d.devices, name)
}

func (d *daemon) send(c nfcommsv1.Change, m *nfcommsv1.Device) {
	for w := range d.watches {
		w <- &nfcommsv1.WatchDevicesResponse{Change: c, Device: m}
	}
}

// numa places a device next to a node of the machine.
func numa(node int32) func(*nfcommsv1.Device) {
	return func(m *nfcommsv1.Device) { m.Board = &nfcommsv1.Board{NumaNode: &node} }
}

// WatchDevices streams a snapshot and what follows.
func (d *daemon) WatchDevices(_ *nfcommsv1.WatchDevicesRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchDevicesResponse]) error {
	w := make(chan *nfcommsv1.WatchDevicesResponse, 4096) // more than any test sends
	d.mu.Lock()
	for _, m := range d.devices {
		w <- &nfcommsv1.WatchDevicesResponse{Change: nfcommsv1.Change_CHANGE_SNAPSHOT, Device: m}
	}
	w <- &nfcommsv1.WatchDevicesResponse{Change: nfcommsv1.Change_CHANGE_SYNCED}
	d.watches[w] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watches, w)
	}()
	for {
		select {
		case m := <-w:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// ResetDevice counts.
func (d *daemon) ResetDevice(_ context.Context, r *nfcommsv1.ResetDeviceRequest) (*nfcommsv1.ResetDeviceResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resets[strings.TrimPrefix(r.GetName(), "devices/")]++
	return &nfcommsv1.ResetDeviceResponse{}, d.failing
}

// GetFabric tells the node of a device that has one.
func (d *daemon) GetFabric(_ context.Context, r *nfcommsv1.GetFabricRequest) (*nfcommsv1.GetFabricResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if node := d.nodes[strings.TrimPrefix(r.GetName(), "devices/")]; node != "" {
		return &nfcommsv1.GetFabricResponse{Torus: "4x4x1", Node: node}, nil
	}
	return nil, status.Error(codes.FailedPrecondition, "no fabric")
}

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// count counts the lines that have a text.
func (j *journal) count(text string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// running is a plugin that runs until the test ends.
type running struct {
	journal
	stop func() error // ends it and waits
	wait func() error // waits until it ended by itself
}

// run starts a plugin. Cards are device nodes that need not be there; any other device is a socket.
func run(t *testing.T, folder, address string, adjust ...func(*Options)) *running {
	client, err := Dial("unix:" + address)
	require.NoError(t, err)
	r := new(running)
	o := Options{Client: client, Folder: folder, Log: slog.New(slog.NewTextHandler(&r.journal, nil)), Shares: Shares{Default: 3}}
	o.describe = func(name, address string) (cdi.Device, error) {
		if strings.HasPrefix(address, "shm:") {
			return cdi.Device{Name: name, Edits: cdi.Edits{Env: []string{cdi.Variable(name) + "=" + address}, Mounts: []cdi.Mount{{HostPath: address[4:], ContainerPath: address[4:]}}}}, nil
		}
		return cdi.Describe(name, address, nil)
	}
	for _, f := range adjust {
		f(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	r.wait = sync.OnceValue(func() error {
		err := <-done
		_ = client.Close()
		return err
	})
	r.stop = func() error {
		cancel()
		return r.wait()
	}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// short returns a folder whose path leaves room for the names of sockets.
func short(t *testing.T) string {
	dir, err := os.MkdirTemp("", "nfp")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// states of devices.
const (
	ready     = nfcommsv1.Device_STATE_READY
	failed    = nfcommsv1.Device_STATE_FAILED
	resetting = nfcommsv1.Device_STATE_RESETTING
	draining  = nfcommsv1.Device_STATE_DRAINING
)

// cards adds so many, all ready.
func (d *daemon) cards(n int) {
	for i := range n {
		d.set(fmt.Sprint("nic", i), fmt.Sprint("dev:", i), ready)
	}
}

package control_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// check ends an example that fails.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// exampleServer serves a device "devices/nic0" on a UNIX socket.
func exampleServer(ctx context.Context) (c *control.Client, stop func()) {
	folder, err := os.MkdirTemp("", "nfcomms")
	check(err)
	l, err := net.Listen("unix", filepath.Join(folder, "control.sock"))
	check(err)
	srv := control.New(control.Options{})
	check(srv.Open(ctx, "nic0", "sim:"))
	gs := grpc.NewServer()
	srv.Register(gs)
	served := make(chan error, 1)
	go func() { served <- gs.Serve(l) }()
	c, err = control.Dial("unix://" + l.Addr().String())
	check(err)
	return c, func() {
		check(c.Close())
		check(srv.Shutdown(ctx))
		gs.Stop()
		check(<-served)
		check(os.RemoveAll(folder))
	}
}

// An application embeds the server in a few lines.
func Example() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()

	srv := control.New(control.Options{})
	check(srv.Attach("nic0", dev))
	gs := grpc.NewServer()
	srv.Register(gs)
	l, err := net.Listen("tcp", "127.0.0.1:0") // loopback only: see SECURITY.md
	check(err)
	served := make(chan error, 1)
	go func() { served <- gs.Serve(l) }()

	fmt.Println(len(gs.GetServiceInfo()), "services")
	check(srv.Shutdown(ctx))
	gs.GracefulStop()
	check(<-served)
	// Output: 10 services
}

// A remote client sends and receives messages. A longer message is refused.
func ExampleClient_Send() {
	ctx := context.Background()
	c, stop := exampleServer(ctx)
	defer stop()

	name := control.ChannelName("nic0", nfcomms.Loopback)
	_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: name})
	check(err)
	check(c.Send(ctx, name, []byte("hello")))
	msg, err := c.Receive(ctx, name)
	check(err)
	fmt.Printf("%s\n", msg)

	err = c.Send(ctx, name, make([]byte, 57))
	fmt.Println(errors.Is(err, nfcomms.ErrTooLarge))
	// Output:
	// hello
	// true
}

// Errors keep their meaning on the way.
func ExampleError() {
	ctx := context.Background()
	c, stop := exampleServer(ctx)
	defer stop()

	_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: "devices/nic0/channels/99"})
	fmt.Println(errors.Is(err, nfcomms.ErrNotSubscribed))
	var e *control.Error
	if errors.As(err, &e) {
		fmt.Println(e.Reason)
	}
	// Output:
	// true
	// NOT_SUBSCRIBED
}

// A watch gives what there is, then what changes.
func ExampleClient_WatchDevices() {
	ctx := context.Background()
	c, stop := exampleServer(ctx)
	defer stop()

	drained := make(chan error, 1)
	devices := make(map[string]*nfcommsv1.Device)
	for r, err := range c.WatchDevices(ctx) {
		if errors.Is(err, control.ErrResumeExpired) {
			clear(devices) // a new snapshot follows
			continue
		}
		check(err)
		switch r.Change {
		case nfcommsv1.Change_CHANGE_SYNCED:
			fmt.Println(len(devices), "device")
			go func() {
				_, err := c.Devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{Name: "devices/nic0"})
				drained <- err
			}()
		case nfcommsv1.Change_CHANGE_DELETED:
			delete(devices, r.Device.Name)
		default:
			devices[r.Device.Name] = r.Device
		}
		if r.GetDevice().GetState() == nfcommsv1.Device_STATE_DRAINED {
			fmt.Println(r.Device.Name, "is drained")
			break
		}
	}
	check(<-drained)
	// Output:
	// 1 device
	// devices/nic0 is drained
}

// ListDevices asks for one page after the other.
func ExampleClient_ListDevices() {
	ctx := context.Background()
	c, stop := exampleServer(ctx)
	defer stop()

	for d, err := range c.ListDevices(ctx) {
		check(err)
		fmt.Println(d.Name, d.Driver, d.State)
	}
	// Output: devices/nic0 sim STATE_READY
}

// Health answers after a round trip to the firmware.
func ExampleHealthService() {
	ctx := context.Background()
	c, stop := exampleServer(ctx)
	defer stop()

	r, err := c.Health.Check(ctx, &healthpb.HealthCheckRequest{Service: control.HealthService("nic0")})
	check(err)
	fmt.Println(r.Status)
	// Output: SERVING
}

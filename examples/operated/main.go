// Command operated is a small Go service around a device: it sends bulk data with
// SendInd all the time, is operated through the control plane (nfctl) and
// scraped by Prometheus. The device runs in this process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/metrics"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// options are the flags.
type options struct {
	device, socket, http string
	senders, size        int
}

func main() {
	var o options
	flag.StringVar(&o.device, "device", "sim:", "address of the device")
	flag.StringVar(&o.socket, "socket", filepath.Join(os.TempDir(), "nfcomms-operated.sock"), "UNIX socket of the control plane")
	flag.StringVar(&o.http, "http", "127.0.0.1:7451", "address of /metrics, /healthz and /readyz")
	flag.IntVar(&o.senders, "senders", 2, "goroutines that send")
	flag.IntVar(&o.size, "size", 256<<10, "bytes of one transfer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

// run serves and sends until ctx ends.
func run(ctx context.Context, o options) (err error) {
	dev, err := nfcomms.Open(ctx, o.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	stop, err := operate(dev, o)
	if stop != nil {
		defer func() { err = errors.Join(err, stop()) }()
	}
	if err != nil {
		return err
	}
	sink, err := dev.Run(ctx, nfcomms.Program{Name: "sink", Targets: o.senders})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, o.senders)
	for _, ch := range sink.Channels {
		go func() { ended <- send(ctx, ch, o) }()
	}
	for range o.senders {
		err = errors.Join(err, <-ended)
		cancel() // one that failed ends the others
	}
	return err
}

// operate opens the service for nfctl and Prometheus. stop ends that.
func operate(dev *nfcomms.Device, o options) (stop func() error, err error) {
	socket, err := net.Listen("unix", o.socket)
	if err != nil {
		return nil, err
	}
	web, err := net.Listen("tcp", o.http)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	plane, calls, reg := control.New(control.Options{Logger: slog.Default()}), grpc.NewServer(), prometheus.NewRegistry()
	plane.Register(calls)
	err = plane.Attach("sim0", dev)
	reg.MustRegister(metrics.NewCollector(plane.Devices, metrics.Options{Channels: true, Trace: 64}))
	pages := &http.Server{Handler: metrics.Handler(metrics.HandlerOptions{Gatherer: reg}), ReadHeaderTimeout: time.Second}
	go func() { _ = calls.Serve(socket) }() // both end with stop
	go func() { _ = pages.Serve(web) }()
	fmt.Printf("control plane: unix://%s\nmetrics: http://%s/metrics\n", o.socket, web.Addr())
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		defer context.AfterFunc(ctx, calls.Stop)() // a client that does not read must not hold this up
		defer calls.GracefulStop()
		return errors.Join(plane.Shutdown(ctx), pages.Shutdown(ctx))
	}, err
}

// send gives one buffer to a device process again and again until ctx ends.
func send(ctx context.Context, ch *nfcomms.Channel, o options) (err error) {
	for data := make([]byte, o.size); err == nil; time.Sleep(time.Millisecond) { // leaves some time to others
		err = ch.SendInd(ctx, data)
	}
	if ctx.Err() != nil {
		return nil // the error is that of the end
	}
	return err
}

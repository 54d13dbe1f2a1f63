package main

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"google.golang.org/grpc"
)

const (
	// lastGrace is the time for devices to close once drain.timeout is over.
	lastGrace = 10 * time.Second
	// flushTime is the time for answers that are on their way.
	flushTime = time.Second
)

// drain ends the daemon: health is NOT_SERVING, new calls are refused,
// watches end with a status to resume from, running calls may continue for
// drain.timeout or until a second signal, then devices and connections close.
func (d *daemon) drain(signals <-chan os.Signal) {
	notify(d.log, systemd.SdNotifyStopping, "STATUS=draining")
	ctx, cancel := context.WithTimeout(context.Background(), d.conf.Drain.Timeout)
	defer cancel()
	drained := make(chan struct{})
	defer close(drained)
	go func() {
		for {
			select {
			case sig := <-signals:
				if sig != syscall.SIGHUP {
					cancel()
				}
			case <-drained:
				return
			}
		}
	}()
	if err := d.control.Shutdown(ctx); err != nil && ctx.Err() != nil {
		d.log.Warn("running calls are ended", "after", d.conf.Drain.Timeout)
	}
	// The devices close in bounded time, whatever they do.
	last, stop := context.WithTimeout(context.Background(), lastGrace)
	defer stop()
	if err := d.control.Shutdown(last); err != nil {
		d.log.Error("devices not closed", "error", err)
	}
	d.hangUp()
}

// hangUp closes listeners and connections. No call of ours is left; streams of
// gRPC's own services, and scrapes, get flushTime.
func (d *daemon) hangUp() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	var closing sync.WaitGroup
	for _, gs := range []*grpc.Server{d.local, d.remote} {
		if gs != nil {
			cut := context.AfterFunc(ctx, gs.Stop)
			defer cut()
			closing.Go(gs.GracefulStop)
		}
	}
	for _, w := range d.webs {
		closing.Go(func() {
			if err := w.Shutdown(ctx); err != nil {
				w.Close()
			}
		})
	}
	closing.Wait()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// localName is the name of the device that --device opens.
const localName = "local"

// dialDevice opens a device here and serves it to ourselves over memory, so
// that every command works as it does with a daemon.
func (a *app) dialDevice(ctx context.Context) (*control.Client, func() error, error) {
	dev, err := nfcomms.Open(ctx, a.device)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", control.ErrNotOpen, err)
	}
	srv := control.New(control.Options{})
	if err := srv.Attach(localName, dev); err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	gs := grpc.NewServer()
	srv.Register(gs)
	l := bufconn.Listen(64 << 10)
	served := make(chan struct{})
	go func() {
		defer close(served)
		// It returns when Stop closes the listener, without an error.
		_ = gs.Serve(l)
	}()
	stop := func() error {
		err := srv.Shutdown(context.WithoutCancel(ctx))
		gs.Stop()
		<-served
		return errors.Join(err, dev.Close())
	}
	c, err := control.Dial("passthrough:///"+localName,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	a.opened = dev
	return c, func() error { return errors.Join(c.Close(), stop()) }, nil
}

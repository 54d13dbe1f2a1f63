//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hosts"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/mesh/udp"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// node is a node of a fabric, which this process is.
type node struct {
	*nodeSettings
	mesh.Fabric
	log    *slog.Logger
	shape  firmware.Config // of its device, and of those of all nodes
	device *firmware.Instance
}

// runNode is a node until ctx ends, or its commands do.
func runNode(ctx context.Context, o *options, std streams) error {
	log, err := o.logger(std.err)
	if err != nil {
		return err
	}
	s, err := parseNode(o)
	if err != nil {
		return err
	}
	if err := s.issued(o, log); err != nil {
		return err
	}
	device, lines, err := prepareShared(o, log)
	if err != nil {
		return err
	}
	defer lines.Close()
	n := &node{nodeSettings: s, log: log, Fabric: mesh.Fabric{At: s.torus.Index(s.at)}}
	here := make([]bool, s.torus.Nodes())
	here[n.own()] = true
	n.Mesh, err = mesh.Open(mesh.OverConnections(mesh.Config{
		Side: [3]int{s.torus.X, s.torus.Y, s.torus.Z}, Here: here, Whole: true, Classic: s.classic, Depth: s.depth,
	}))
	if err != nil {
		return err
	}
	defer n.Mesh.Close()
	clients, err := n.startDevice(device)
	if err != nil {
		return err
	}
	defer clients.Close()
	return n.run(ctx, o, device, clients, std)
}

// run joins the neighbours and serves clients until ctx ends, or the commands do.
func (n *node) run(ctx context.Context, o *options, device *shared, clients *hosts.Server, std streams) error {
	s := n.nodeSettings
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var links sync.WaitGroup
	defer links.Wait()
	defer stop()
	served := make(chan error, 3) // clients, and neighbours over TCP and UDP
	socket, err := n.listenShared(o, device)
	if socket != nil {
		fmt.Fprintf(std.out, "listening %s\n", o.shm)
		defer socket.Close() // unlinks it, unless it is systemd's
		links.Go(func() { served <- clients.Serve(ctx, socket) })
	}
	if err != nil {
		return err
	}
	if s.listen != "" {
		listeners, at, err := udp.Listeners(s.listen)
		if err != nil {
			return err
		}
		fmt.Fprintf(std.out, "listening %s\n", at)
		for _, l := range listeners {
			links.Go(func() { served <- n.Mesh.Serve(ctx, l, &s.id, n.ended("a neighbour's connection ended")) })
		}
	}
	for l, address := range s.dial {
		links.Go(func() {
			_ = n.Mesh.Keep(ctx, address, n.own(), int(l), &s.id, n.ended("link "+l.String()+" ended"))
		})
	}
	fmt.Fprintf(std.out, "node %v of %v, certificate %x\n", s.at, s.torus, s.print)
	if o.console {
		return n.console(ctx, std.in, std.out)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// errHungUp is why a connection ended whose other end closed it: it ended, or the link
// has another connection there.
var errHungUp = errors.New("the neighbour closed it")

// own is the node's number.
func (n *node) own() int { return n.At }

// ended logs why connections end: at most one a second, as anybody may cause them.
func (n *node) ended(what string) func(error) {
	var mu sync.Mutex
	var last time.Time
	unlogged := 0
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, context.Canceled) {
			return
		}
		if time.Since(last) < time.Second {
			unlogged++
			return
		}
		if err == nil {
			err = errHungUp
		}
		n.log.Warn(what, "err", err, "unlogged", unlogged)
		last, unlogged = time.Now(), 0
	}
}

// snapshot is what the node knows.
func (n *node) snapshot() (*topology.Snapshot, error) {
	state, err := n.State()
	if err != nil {
		return nil, err
	}
	return topology.Of(&state), nil
}

package main

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/access"
	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

func init() {
	bridge.Register("broken", func(context.Context, bridge.Address, *bridge.Options) (bridge.Device, error) {
		return nil, bridge.ErrNoMemory
	})
	bridge.Register("card", func(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
		dev, err := bridge.Open(ctx, "sim:", o)
		if err != nil {
			return nil, err
		}
		return bridgetest.NewCard(dev), nil
	})
	bridge.Register("made", func(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
		a.Scheme = "sim"
		dev, err := bridge.Open(ctx, a.String(), o)
		return made{dev}, err
	})
	for scheme, health := range map[string]func(bridge.Health) (bridge.Health, error){
		"sick": func(h bridge.Health) (bridge.Health, error) {
			h.Diagnostic |= abi.Diagnostic(abi.Sick) << abi.DiagTemperature
			return h, nil
		},
		"lost": func(h bridge.Health) (bridge.Health, error) {
			return bridge.Health{}, bridge.ErrDeviceLost
		},
	} {
		bridge.Register(scheme, func(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
			a.Scheme = "sim"
			dev, err := bridge.Open(ctx, a.String(), o)
			if err != nil {
				return nil, err
			}
			return unwell{dev, scheme, health}, nil
		})
	}
}

// made is a device that calls itself the card of a maker.
type made struct{ bridge.Device }

func (m made) Info() bridge.Info {
	info := m.Device.Info()
	info.Driver, info.Board = "dev", &bridge.Board{Vendor: 0x19ee}
	return info
}

func (m made) Fabric() bridge.Fabric { return m.Device.(bridge.FabricNode).Fabric() }

// unwell is a device whose heartbeat a test makes up.
type unwell struct {
	bridge.Device
	scheme string
	health func(bridge.Health) (bridge.Health, error)
}

func (u unwell) Info() bridge.Info {
	info := u.Device.Info()
	info.Driver, info.Address = u.scheme, u.scheme+":"
	return info
}

func (u unwell) Health() (bridge.Health, error) {
	h, err := u.Device.Health()
	if err != nil {
		return h, err
	}
	return u.health(h)
}

func (u unwell) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	if _, err := u.Health(); err != nil {
		return nil, err
	}
	return u.Device.Subscribe(ctx, t)
}

// host is a real control server on a socket, with real devices.
type host struct {
	srv  *control.Server
	gs   *grpc.Server
	done chan error
	path string
	// own are the application's devices and their channels.
	own []*nfcomms.Device
}

// hostOptions are what a host is made of.
type hostOptions struct {
	// devices are "NAME=ADDRESS"; with a "+" before it the application opens
	// the device, holds its time service and has a channel to its loopback.
	devices []string
	// role is what the authorizer gives this user; without one there is no authorizer.
	role string
	// members of a group in this process, after three steps.
	members int
}

// newHost starts a host on a socket.
func newHost(ctx context.Context, path string, o hostOptions) (*host, error) {
	members, err := startMembers(ctx, o.members)
	if err != nil {
		return nil, err
	}
	h := &host{srv: control.New(control.Options{Groups: members, ProbeTimeout: watchdog}), done: make(chan error, 1), path: path}
	var options []grpc.ServerOption
	if o.role != "" {
		policy := access.NewPolicy()
		role, err := access.ParseRole(o.role)
		if err != nil {
			return nil, err
		}
		if err := policy.Grant(role, "gid:"+groupOfSelf()); err != nil {
			return nil, err
		}
		authorizer := access.NewAuthorizer(policy, access.Methods(), nil)
		options = append(options, grpc.Creds(access.LocalCredentials(access.Limits{})), grpc.UnaryInterceptor(authorizer.Unary), grpc.StreamInterceptor(authorizer.Stream))
	}
	h.gs = grpc.NewServer(options...)
	h.srv.Register(h.gs)
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	go func() { h.done <- h.gs.Serve(l) }()
	for _, d := range o.devices {
		if err := h.add(ctx, d); err != nil {
			return nil, errors.Join(err, h.stop())
		}
	}
	return h, nil
}

// startMembers has so many members do three steps, in which each sends 100 bytes to
// each other one, and yields them as "m0", "m1" … .
func startMembers(ctx context.Context, n int) (func() iter.Seq2[string, *group.Group], error) {
	mesh := group.NewMesh(n)
	all := make(map[string]*group.Group)
	var mu sync.Mutex
	var joined errgroup.Group
	for rank := range n {
		joined.Go(func() error {
			g, err := group.Join(ctx, mesh, group.Options{Rank: rank, Size: n, Algorithm: "isend"})
			if err != nil {
				return err
			}
			var out []group.Package
			for to := range n {
				if to != rank {
					out = append(out, group.Package{Rank: to, Data: make([]byte, 100)})
				}
			}
			for range 3 {
				if _, err := g.Exchange(ctx, out); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all["m"+strconv.Itoa(rank)] = g
			return nil
		})
	}
	return func() iter.Seq2[string, *group.Group] { return maps.All(all) }, joined.Wait()
}

func groupOfSelf() string { return strconv.Itoa(os.Getegid()) }

func (h *host) add(ctx context.Context, device string) error {
	name, address, _ := strings.Cut(device, "=")
	name, own := strings.CutPrefix(name, "+")
	if !own {
		return h.srv.Open(ctx, name, address)
	}
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return err
	}
	h.own = append(h.own, dev)
	for _, target := range []nfcomms.Target{admin.Time, nfcomms.Loopback} {
		if _, err := dev.Subscribe(ctx, target); err != nil {
			return err
		}
	}
	return h.srv.Attach(name, dev)
}

// stop ends the host and removes its socket.
func (h *host) stop() error {
	err := h.srv.Shutdown(context.Background())
	h.gs.Stop()
	err = errors.Join(err, <-h.done)
	for _, dev := range h.own {
		err = errors.Join(err, dev.Close())
	}
	return err
}

// startHost starts a host until the test ends, and returns its address.
func startHost(t *testing.T, o hostOptions) (*host, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nfctl") // short enough for a socket
	require.NoError(t, err)
	path := filepath.Join(dir, "s")
	h, err := newHost(t.Context(), path, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, h.stop())
		require.NoError(t, os.RemoveAll(dir))
	})
	return h, "unix:" + path
}

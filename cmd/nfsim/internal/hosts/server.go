//go:build cgo

package hosts

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/owners"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// Options adjusts a server.
type Options struct {
	// Device is the shape that each client sees; Shared of it is how many there are.
	Device firmware.Config
	// Memory is how many bytes a client may map, at most.
	Memory uint64
	// UserHosts and UserMemory bound all clients of one user together. They do not
	// bound root and the user of this process, who may end it anyhow.
	UserHosts  int
	UserMemory uint64
	Logger     *slog.Logger
}

const (
	// silentMost is how many connections may have said nothing yet; the next one ends
	// the oldest of the user that has the most of them.
	silentMost = 128
	// silentTime is how long one may say nothing.
	silentTime = 5 * time.Second
	// answerTime bounds the wait for a client that does not read its answers.
	answerTime = time.Second
)

// Server is a device that processes share.
type Server struct {
	device   *firmware.Instance
	fabric   Fabric // nil: it is no node of one
	place    uint64 // shmwire.AddressOf the node; 0: likewise
	options  Options
	areaSize uint64
	log      *slog.Logger
	clients  sync.WaitGroup
	owners   *owners.Owners
	peerOf   func(syscall.Conn) (fdpass.Peer, error) // fdpass.PeerOf; tests are several users
	groupOf  func(pid int32) string                  // owners.GroupOf; tests are several pods

	mu      sync.Mutex
	open    map[*net.UnixConn]*deviceShare
	silent  []silent // those of open that said nothing, the oldest first
	users   map[string]*user
	shares  map[*deviceShare]bool
	exposed map[uint64]exposure // by their keys
	ended   bool
}

// New boots the device.
func New(o Options) (*Server, abi.Status) {
	device, status := firmware.Start(o.Device)
	if status != abi.OK {
		return nil, status
	}
	return &Server{
		device: device, options: o, areaSize: o.Device.AreaSize(), log: o.Logger,
		owners: owners.New(), peerOf: fdpass.PeerOf, groupOf: owners.GroupOf,
		open: make(map[*net.UnixConn]*deviceShare), users: make(map[string]*user), shares: make(map[*deviceShare]bool),
		exposed: make(map[uint64]exposure),
	}, abi.OK
}

// Serve serves clients until ctx ends.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	return s.acceptAll(ctx, l, nil)
}

// acceptAll serves the clients of a share, or those of none, until ctx ends.
func (s *Server) acceptAll(ctx context.Context, l *net.UnixListener, sh *deviceShare) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	failing := false // logged already
	for {
		c, err := l.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case err != nil && !transient(err):
			return err
		case err != nil:
			if !failing {
				s.log.Warn("no client is accepted for now", "err", err)
			}
			failing = true
			time.Sleep(acceptPause)
		default:
			failing = false
			s.accept(c, sh)
		}
	}
}

// accept serves a connection of whomever the kernel names.
func (s *Server) accept(c *net.UnixConn, sh *deviceShare) {
	peer, err := s.peerOf(c)
	if err != nil {
		_ = c.Close()
		return
	}
	if o := s.originOf(peer, sh); s.enter(c, o) {
		s.clients.Go(func() { s.serve(c, o) })
	}
}

// Close ends every connection, and then the device.
func (s *Server) Close() {
	s.mu.Lock()
	s.ended = true
	for c := range s.open {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // closed when the device has forgotten it
	}
	for sh := range s.shares {
		sh.stop()
	}
	s.mu.Unlock()
	s.clients.Wait()
	if s.fabric != nil {
		s.fabric.Leave()
	}
	s.device.Close()
}

// serve serves one connection until it ends.
func (s *Server) serve(c *net.UnixConn, o origin) {
	defer s.leave(c)
	s.wait(c, time.Now().Add(silentTime))
	hello, files, ok := s.greet(c)
	s.spoke(c)
	switch {
	case !ok:
	case hello.Kind == shmwire.Share:
		s.send(c, s.openShare(o, &hello, files[0]))
	case hello.Kind == shmwire.Unshare:
		s.send(c, s.unshare(o, &hello))
	default:
		s.host(c, o, hello)
	}
}

// host serves a client of the device until it ends.
func (s *Server) host(c *net.UnixConn, o origin, hello shmwire.Message) {
	log := s.log.With("pid", o.peer.PID, "uid", o.peer.UID)
	u, ok := s.admit(o)
	if !ok {
		log.Warn("client refused: its user has all places that a user gets", "owner", o.owner, "places", u.hostsMost)
		s.send(c, shmwire.Refusal(hello.Kind, abi.ErrBusy, shmwire.Bound{Of: u.of, Most: uint64(u.hostsMost)}))
		return
	}
	defer s.dismiss(o)
	h, status := s.attach(c, o, u, hello, log)
	if status != abi.OK {
		log.Warn("client refused", "status", status)
		s.send(c, shmwire.Refusal(hello.Kind, status, s.boundOf(status, hello.Address)))
		return
	}
	log.Info("client attached", "epoch", h.epoch)
	err := h.serve()
	stats := h.end()
	log.Info("client has closed", "err", err, "read", stats.BytesRead, "written", stats.BytesWritten, "faults", stats.Faults)
}

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

	mu     sync.Mutex
	open   map[*net.UnixConn]bool
	silent []silent // those of open that said nothing, the oldest first
	users  map[string]*user
	ended  bool
}

// New boots the device.
func New(o Options) (*Server, abi.Status) {
	device, status := firmware.Start(o.Device)
	if status != abi.OK {
		return nil, status
	}
	return &Server{
		device: device, options: o, areaSize: o.Device.AreaSize(), log: o.Logger,
		owners: owners.New(), peerOf: fdpass.PeerOf,
		open: make(map[*net.UnixConn]bool), users: make(map[string]*user),
	}, abi.OK
}

// Serve serves clients until ctx ends.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
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
			s.accept(c)
		}
	}
}

// accept serves a connection of whomever the kernel names.
func (s *Server) accept(c *net.UnixConn) {
	peer, err := s.peerOf(c)
	if err != nil {
		_ = c.Close()
		return
	}
	if owner := s.owner(peer); s.enter(c, owner) {
		s.clients.Go(func() { s.serve(c, peer, owner) })
	}
}

// Close ends every connection, and then the device.
func (s *Server) Close() {
	s.mu.Lock()
	s.ended = true
	for c := range s.open {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // closed when the device has forgotten it
	}
	s.mu.Unlock()
	s.clients.Wait()
	if s.fabric != nil {
		s.fabric.Leave()
	}
	s.device.Close()
}

// serve serves one connection until it ends.
func (s *Server) serve(c *net.UnixConn, peer fdpass.Peer, owner string) {
	defer s.leave(c)
	_ = c.SetReadDeadline(time.Now().Add(silentTime))
	hello, ok := s.greet(c)
	s.spoke(c)
	if !ok {
		return
	}
	log := s.log.With("pid", peer.PID, "uid", peer.UID)
	u := s.admit(owner, isOwn(peer))
	if u == nil {
		log.Warn("client refused: its user has all places that a user gets", "places", s.options.UserHosts)
		s.send(c, shmwire.Refusal(hello.Kind, abi.ErrBusy, shmwire.Bound{Of: shmwire.OfUser, Most: uint64(s.options.UserHosts)}))
		return
	}
	defer s.dismiss(owner)
	h, status := s.attach(c, peer, u, hello, log)
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

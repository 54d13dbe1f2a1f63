//go:build cgo

package hosts

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/firmware"
	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Options adjusts a server.
type Options struct {
	// Device is the shape that each client sees; Shared of it is how many there are.
	Device firmware.Config
	// Memory is how many bytes a client may map, at most.
	Memory uint64
	Logger *slog.Logger
}

const (
	// silentMost is how many connections may have said nothing yet; the next one ends
	// the oldest of them.
	silentMost = 128
	// silentTime is how long one may say nothing.
	silentTime = 5 * time.Second
	// answerTime bounds the wait for a client that does not read its answers.
	answerTime = time.Second
)

// Server is a device that processes share.
type Server struct {
	device   *firmware.Instance
	options  Options
	areaSize uint64
	log      *slog.Logger
	clients  sync.WaitGroup

	mu     sync.Mutex
	open   map[*net.UnixConn]bool
	silent []*net.UnixConn // those of open that said nothing, the oldest first
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
		open: make(map[*net.UnixConn]bool),
	}, abi.OK
}

// Serve serves clients until ctx ends, then takes leave of all of them.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
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
			time.Sleep(acceptPause)
		case s.enter(c):
			s.clients.Go(func() { s.serve(c) })
		}
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
	s.device.Close()
}

// enter takes note of a connection; false if it is over already.
func (s *Server) enter(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		_ = c.Close()
		return false
	}
	if len(s.silent) == silentMost {
		_ = s.silent[0].Close()
		s.silent = s.silent[1:]
	}
	s.silent = append(s.silent, c)
	s.open[c] = true
	return true
}

// spoke takes note of the first word of a connection.
func (s *Server) spoke(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.silent, c); i >= 0 {
		s.silent = slices.Delete(s.silent, i, i+1)
	}
}

// leave forgets a connection.
func (s *Server) leave(c *net.UnixConn) {
	s.spoke(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	_ = c.Close()
}

// serve serves one connection until it ends.
func (s *Server) serve(c *net.UnixConn) {
	defer s.leave(c)
	_ = c.SetReadDeadline(time.Now().Add(silentTime))
	hello, ok := s.greet(c)
	s.spoke(c)
	if !ok {
		return
	}
	peer, err := fdpass.PeerOf(c)
	if err != nil {
		return
	}
	h, status := s.attach(c, peer, hello)
	if status != abi.OK {
		s.log.Warn("client refused", "pid", peer.PID, "uid", peer.UID, "status", status)
		s.refuse(c, hello.Kind, status)
		return
	}
	s.log.Info("client attached", "pid", peer.PID, "uid", peer.UID, "epoch", h.epoch)
	err = h.serve()
	stats := h.end()
	s.log.Info("client gone", "pid", peer.PID, "err", err, "read", stats.BytesRead, "written", stats.BytesWritten, "faults", stats.Faults)
}

// mayLoad reports whether a client may run programs as this process: its own user, who
// could do so anyhow, and root.
func mayLoad(p fdpass.Peer) bool { return p.UID == 0 || int(p.UID) == os.Geteuid() }

//go:build cgo

package hosts

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// deviceShare is a part of the device, with a socket of its own. Its clients are counted as one user. None
// has the rights of the device's own user, root neither: it could load a program that takes more.
type deviceShare struct {
	name string
	user user
	part firmware.Part // of each client
	stop context.CancelFunc

	over    bool           // guarded by the server's mu
	clients sync.WaitGroup // none is added once it is over
}

// openShare makes a share, or says what forbids it.
func (s *Server) openShare(o origin, m *shmwire.Message, fd int) shmwire.Message {
	f := os.NewFile(uintptr(fd), "share")
	defer f.Close()
	switch {
	case !o.own:
		return shmwire.Refusal(m.Kind, abi.ErrNotSupported, shmwire.Bound{Of: shmwire.OfUser})
	case s.fabric != nil: // channels at other nodes are not counted here
		return shmwire.Refusal(m.Kind, abi.ErrNotSupported, shmwire.Bound{Of: shmwire.OfNode})
	}
	limits, l := shmwire.LimitsOf(m), listenerOf(f)
	part, ok := s.partOf(limits)
	status := abi.ErrInvalid
	if ok && l != nil {
		sh := &deviceShare{name: "share " + l.Addr().String(), part: part}
		sh.user = user{of: shmwire.OfShare, hostsMost: int(limits.Clients), mappedMost: limits.Memory}
		if s.begin(sh, l) {
			s.log.Info("share", "socket", l.Addr(), "clients", limits.Clients, "channels", part.Channels, "processes", part.Processes, "bytes", limits.Memory)
			return shmwire.Message{Kind: m.Kind}
		}
		status = abi.ErrBusy
	}
	if l != nil {
		_ = l.Close()
	}
	return shmwire.Refusal(m.Kind, status, shmwire.Bound{})
}

// listenerOf returns the socket of a file, nil if it is none of this wire that listens.
func listenerOf(f *os.File) *net.UnixListener {
	if on, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
		return nil
	}
	any, err := net.FileListener(f)
	if err != nil {
		return nil
	}
	if l, is := any.(*net.UnixListener); is && l.Addr().Network() == shmwire.Network {
		return l
	}
	_ = any.Close()
	return nil
}

// partOf returns the part of each client of a share; false if there can be none.
func (s *Server) partOf(l shmwire.Limits) (firmware.Part, bool) {
	clients := int(l.Clients)
	if clients == 0 || clients > s.options.Device.Shared {
		return firmware.Part{}, false
	}
	if l.Channels != 0 && int(l.Channels) < clients || l.Processes != 0 && int(l.Processes) < clients {
		return firmware.Part{}, false
	}
	return s.options.Device.Part(int(l.Channels)/clients, int(l.Processes)/clients)
}

// begin serves a share; false if there are as many as the device has places, or it ends.
func (s *Server) begin(sh *deviceShare, l *net.UnixListener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || len(s.shares) == s.options.Device.Shared {
		return false
	}
	var ctx context.Context
	ctx, sh.stop = context.WithCancel(context.Background())
	s.shares[sh] = true
	s.clients.Go(func() {
		if err := s.acceptAll(ctx, l, sh); err != nil {
			s.log.Warn("a share ended", "socket", l.Addr(), "err", err)
			s.endShare(sh)
		}
	})
	return true
}

// endShare ends a share and returns once the device has forgotten its clients.
func (s *Server) endShare(sh *deviceShare) {
	s.mu.Lock()
	sh.over = true
	delete(s.shares, sh)
	for c, of := range s.open {
		if of == sh {
			_ = c.SetReadDeadline(time.Unix(1, 0))
		}
	}
	s.mu.Unlock()
	sh.stop()
	sh.clients.Wait()
}

// unshare ends the share over whose socket it is asked for.
func (s *Server) unshare(o origin, m *shmwire.Message) shmwire.Message {
	if o.share == nil || !isOwn(o.peer) {
		return shmwire.Refusal(m.Kind, abi.ErrNotSupported, shmwire.Bound{Of: shmwire.OfUser})
	}
	s.endShare(o.share)
	s.log.Info("share ended", "socket", o.share.name)
	return shmwire.Message{Kind: m.Kind}
}

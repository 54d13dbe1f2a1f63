//go:build cgo

package hosts

import (
	"net"
	"os"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/owners"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// user is what the clients of one user have together, and may have. Guarded by the server's mu, but
// for the bounds, which do not change.
type user struct {
	hosts  int
	mapped uint64 // bytes
	own    bool   // it is bounded by nothing

	of         shmwire.Of // the owner of the bounds: a user, or a share
	hostsMost  int
	mappedMost uint64

	windows, windowBytes uint64
}

// origin is the source of a connection.
type origin struct {
	peer  fdpass.Peer
	owner string       // the name under which it is counted
	own   bool         // as of isOwn, and not by a share
	share *deviceShare // nil: the device's own socket
}

// silent is a connection that said nothing yet, and whose it is.
type silent struct {
	conn  *net.UnixConn
	owner string
}

// isOwn reports whether a client runs as the user of this process, or as root. Such a
// client may run programs as this process, which it could do anyhow.
func isOwn(p fdpass.Peer) bool { return p.UID == 0 || int(p.UID) == os.Geteuid() }

// originOf returns the source of a peer's client; nil: through no share.
func (s *Server) originOf(p fdpass.Peer, sh *deviceShare) origin {
	if sh != nil {
		return origin{peer: p, owner: sh.name, share: sh}
	}
	if isOwn(p) {
		return origin{peer: p, owner: owners.Name(p.UID), own: true}
	}
	return origin{peer: p, owner: s.owners.Of(p.UID, func() string { return s.groupOf(p.PID) })}
}

// enter takes note of a connection; false if it is over already.
func (s *Server) enter(c *net.UnixConn, o origin) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || o.share != nil && o.share.over {
		_ = c.Close()
		return false
	}
	if len(s.silent) == silentMost {
		i := s.loudestLocked()
		_ = s.silent[i].conn.Close()
		s.silent = slices.Delete(s.silent, i, i+1)
	}
	s.silent = append(s.silent, silent{c, o.owner})
	s.open[c] = o.share
	return true
}

// loudestLocked returns the oldest silent connection of the owner who has the most. Must
// hold mu.
func (s *Server) loudestLocked() int {
	count := make(map[string]int)
	most := 0
	for _, c := range s.silent {
		count[c.owner]++
		most = max(most, count[c.owner])
	}
	return slices.IndexFunc(s.silent, func(c silent) bool { return count[c.owner] == most })
}

// wait bounds the time until a connection's next message, unless the server or the share ends: that
// ends it at once.
func (s *Server) wait(c *net.UnixConn, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh := s.open[c]; !s.ended && (sh == nil || !sh.over) {
		_ = c.SetReadDeadline(until)
	}
}

// spoke takes note of the first word of a connection.
func (s *Server) spoke(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = slices.DeleteFunc(s.silent, func(q silent) bool { return q.conn == c })
}

// leave forgets a connection.
func (s *Server) leave(c *net.UnixConn) {
	s.spoke(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	_ = c.Close()
}

// userOfLocked returns the user of an origin. Must hold mu.
func (s *Server) userOfLocked(o origin) *user {
	if o.share != nil {
		return &o.share.user
	}
	u := s.users[o.owner]
	if u == nil {
		u = &user{own: o.own, of: shmwire.OfUser, hostsMost: s.options.UserHosts, mappedMost: s.options.UserMemory}
		s.users[o.owner] = u
	}
	return u
}

// admit counts one more client of a user; false if the user has all that a user gets.
func (s *Server) admit(o origin) (*user, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.userOfLocked(o)
	if !u.own && u.hosts == u.hostsMost || o.share != nil && o.share.over {
		return u, false
	}
	u.hosts++
	if o.share != nil {
		o.share.clients.Add(1)
	}
	return u, true
}

// dismiss counts one less.
func (s *Server) dismiss(o origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.userOfLocked(o)
	if u.hosts--; u.hosts == 0 {
		delete(s.users, o.owner)
	}
	if o.share != nil {
		o.share.clients.Done()
	}
}

// mapping counts memory of a user; false if that would be too much.
func (s *Server) mapping(u *user, size uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.own && size > u.mappedMost-u.mapped {
		return false
	}
	u.mapped += size
	return true
}

// unmapped counts it no more.
func (s *Server) unmapped(u *user, size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.mapped -= size
}

// windowing counts a window of a user; false if that would be too much.
func (s *Server) windowing(u *user, size uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.own && (u.windows == shmwire.UserWindows || size > shmwire.UserWindowBytes-u.windowBytes) {
		return false
	}
	u.windows++
	u.windowBytes += size
	return true
}

// unwindowed counts it no more.
func (s *Server) unwindowed(u *user, size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.windows--
	u.windowBytes -= size
}

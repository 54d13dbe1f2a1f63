//go:build cgo

package hosts

import (
	"net"
	"os"
	"slices"

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

	windows, windowBytes uint64
}

// silent is a connection that said nothing yet, and whose it is.
type silent struct {
	conn  *net.UnixConn
	owner string
}

// isOwn reports whether a client runs as the user of this process, or as root. Such a
// client may run programs as this process, which it could do anyhow.
func isOwn(p fdpass.Peer) bool { return p.UID == 0 || int(p.UID) == os.Geteuid() }

// owner names whom a client is counted under.
func (s *Server) owner(p fdpass.Peer) string {
	if isOwn(p) {
		return owners.Name(p.UID)
	}
	return s.owners.Of(p.UID, func() string { return owners.GroupOf(p.PID) })
}

// enter takes note of a connection; false if it is over already.
func (s *Server) enter(c *net.UnixConn, owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		_ = c.Close()
		return false
	}
	if len(s.silent) == silentMost {
		i := s.loudestLocked()
		_ = s.silent[i].conn.Close()
		s.silent = slices.Delete(s.silent, i, i+1)
	}
	s.silent = append(s.silent, silent{c, owner})
	s.open[c] = true
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

// admit counts one more client of a user; nil if the user has all that a user gets.
func (s *Server) admit(owner string, own bool) *user {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[owner]
	if u == nil {
		u = &user{own: own}
		s.users[owner] = u
	}
	if !u.own && u.hosts == s.options.UserHosts {
		return nil
	}
	u.hosts++
	return u
}

// dismiss counts one less.
func (s *Server) dismiss(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[owner]
	if u.hosts--; u.hosts == 0 {
		delete(s.users, owner)
	}
}

// mapping counts memory of a user; false if that would be too much.
func (s *Server) mapping(u *user, size uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.own && size > s.options.UserMemory-u.mapped {
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

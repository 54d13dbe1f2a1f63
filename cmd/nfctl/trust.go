package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

const (
	// serviceUser is the user of the daemon in the systemd units.
	serviceUser = "nfcomms"
	// anyUser trusts a server of any user.
	anyUser = "*"
)

// untrustedError is the error for a server of an unknown user.
type untrustedError struct {
	path string
	uid  uint32
}

func (e *untrustedError) Error() string {
	return fmt.Sprintf("uid %d serves at %s, and is neither root nor you nor the user of --server-user: nothing was sent "+
		"(--server-user NAME trusts another, --server-user '*' any)", e.uid, e.path)
}

// Unwrap makes it a matter of rights.
func (e *untrustedError) Unwrap() error { return fs.ErrPermission }

// trusts returns which users may serve at a UNIX socket: root, this one, and the
// one of --server-user.
func (s server) trusts() (func(uid uint32) bool, error) {
	if s.serverUser == anyUser {
		return func(uint32) bool { return true }, nil
	}
	allowed := map[uint32]bool{0: true, uint32(os.Geteuid()): true}
	if s.serverUser != "" {
		id, err := userID(s.serverUser)
		if err != nil && s.serverUser != serviceUser { // which a host need not have
			return nil, usagef("--server-user: %w", err)
		}
		if err == nil {
			allowed[id] = true
		}
	}
	return func(uid uint32) bool { return allowed[uid] }, nil
}

// userID returns the number of a user, who may be one already.
func userID(name string) (uint32, error) {
	if u, err := user.Lookup(name); err == nil {
		name = u.Uid
	}
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return 0, user.UnknownUserError(name)
	}
	return uint32(n), nil
}

// dialUnix connects to a UNIX socket if somebody serves there who may: in a
// folder that others can write to, another user can be there first. Nil trusts
// anybody.
func dialUnix(ctx context.Context, path string, trusts func(uid uint32) bool) (net.Conn, error) {
	conn, err := fdpass.Dial(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	who, err := fdpass.PeerOf(conn)
	if err == nil && trusts != nil && !trusts(who.UID) {
		err = &untrustedError{path: path, uid: who.UID}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// letIn returns what lets a user connect to a socket whose mode does not: to join its group, or that of
// its folder, which the administrator of the server chose.
func letIn(path, who string) string {
	for _, file := range []string{path, filepath.Dir(path)} {
		st, err := os.Stat(file)
		if err != nil {
			continue
		}
		right := fs.FileMode(0o020)
		if st.IsDir() {
			right = 0o010
		}
		if gid := ownerOf(st).gid; st.Mode()&right != 0 && gid >= 0 {
			return fmt.Sprintf("sudo usermod -aG %s %s, then log in again", groupName(gid), who)
		}
		return fmt.Sprintf("%s has mode %04o, which keeps all groups out: socket.mode and socket.group of the server's configuration", file, st.Mode().Perm())
	}
	return fmt.Sprintf("sudo usermod -aG %s %s, then log in again, if it is the package's", socketGroup, who)
}

// groupName returns the name of a group, or its number.
func groupName(gid int) string {
	number := strconv.Itoa(gid)
	if g, err := user.LookupGroupId(number); err == nil {
		return g.Name
	}
	return number
}

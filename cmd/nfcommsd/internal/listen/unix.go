package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// maxPath is the room for a path in a socket address, less its final zero.
const maxPath = 107

// Errors of Unix. Compare with errors.Is.
var (
	// ErrPathTooLong: the path does not fit into a socket address.
	ErrPathTooLong = errors.New("socket path too long")
	// ErrNotOurs: at the path is something that this daemon did not make.
	ErrNotOurs = errors.New("not a socket of this daemon")
	// ErrInUse: another process listens there.
	ErrInUse = errors.New("another process is listening")
)

// CheckPath reports whether a socket could have a path, without looking at what
// is there.
func CheckPath(path string) error {
	switch {
	case len(path) > maxPath:
		return fmt.Errorf("%w: %d bytes, at most %d: %s", ErrPathTooLong, len(path), maxPath, path)
	case !filepath.IsAbs(path):
		return fmt.Errorf("socket path %q is not absolute", path)
	}
	return nil
}

// GroupID returns the number of a group, -1 for none.
func GroupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1, fmt.Errorf("socket group: %w", err)
	}
	return strconv.Atoi(g.Gid)
}

// Unix listens on a UNIX socket with permissions and a group (-1: the
// process's own). A socket that a daemon of the same user left behind is
// replaced; anything else at the path is an error and stays. A lock
// beside the socket, PATH.lock, keeps two daemons that start at once apart.
// Closing the listener removes the socket. It changes the umask of the process
// for a moment.
func Unix(path string, mode fs.FileMode, group int) (net.Listener, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	lock, err := takeLock(path + ".lock")
	if err != nil {
		return nil, err
	}
	l, err := bind(path, mode, group)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &unix{UnixListener: l, release: sync.OnceFunc(func() { lock.Close() })}, nil
}

// bind makes the socket. Must hold the lock.
func bind(path string, mode fs.FileMode, group int) (*net.UnixListener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// Nobody else gets in before the socket has its mode and group.
	old := syscall.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(old)
	if err != nil {
		return nil, err
	}
	// Not even to no group: a sandbox may refuse the call as such.
	if group != -1 {
		err = os.Lchown(path, -1, group)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// unix is a listener that gives its lock back.
type unix struct {
	*net.UnixListener
	release func()
}

// Close closes the listener and removes the socket.
func (u *unix) Close() error {
	defer u.release()
	return u.UnixListener.Close()
}

// takeLock locks a file until it is closed. The file stays: to remove it would
// let two processes lock two files of one name.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		if owner, ok := ownerOf(path); ok && owner != os.Geteuid() {
			return nil, fmt.Errorf("%s: %w: it belongs to uid %d, this daemon is uid %d", path, ErrNotOurs, owner, os.Geteuid())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock of the socket: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w: it holds the lock", path, ErrInUse)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// ownerOf returns the uid that owns a file.
func ownerOf(path string) (int, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// removeStale removes a socket that nobody listens on any more.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: %w: it is no socket", path, ErrNotOurs)
	}
	if owner, ok := ownerOf(path); !ok || owner != os.Geteuid() {
		return fmt.Errorf("%s: %w: it belongs to uid %d, this daemon is uid %d", path, ErrNotOurs, owner, os.Geteuid())
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		defer conn.Close()
		who, _ := access.LocalOf(conn) // for the message only
		return fmt.Errorf("%s: %w: pid %d", path, ErrInUse, who.PID)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s: whether somebody listens: %w", path, err)
	}
	return os.Remove(path)
}

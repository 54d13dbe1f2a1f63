package listen

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// activatedEnv makes the test binary print what systemd handed over.
const activatedEnv = "NFCOMMS_LISTEN_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(activatedEnv) != "" {
		printActivated()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Unix(path, 0o640, os.Getegid())
	require.NoError(t, err)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSocket|0o640, info.Mode())

	there, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer there.Close()
	here, err := l.Accept()
	require.NoError(t, err)
	defer here.Close()

	require.NoError(t, l.Close())
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, fs.ErrNotExist, "closing removes it")
	l, err = Unix(path, 0o640, -1)
	require.NoError(t, err, "and makes room for the next")
	require.NoError(t, l.Close())
}

// TestStaleSocket: one that a daemon left behind is replaced.
func TestStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	_, err = os.Lstat(path)
	require.NoError(t, err)

	l, err := Unix(path, 0o600, -1)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestUnixRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")

	long := filepath.Join(dir, strings.Repeat("x", 108))
	_, err := Unix(long, 0o600, -1)
	require.ErrorIs(t, err, ErrPathTooLong)
	require.ErrorContains(t, err, fmt.Sprintf("%d bytes, at most 107: %s", len(long), long))

	_, err = Unix("s", 0o600, -1)
	require.ErrorContains(t, err, "not absolute")
	_, err = Unix(filepath.Join(dir, "gone", "s"), 0o600, -1)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = Unix(path, 0o600, -1)
	require.ErrorIs(t, err, ErrNotOurs)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text), "it is left alone")
	require.NoError(t, os.Remove(path))

	require.NoError(t, os.Symlink(filepath.Join(dir, "elsewhere"), path))
	_, err = Unix(path, 0o600, -1)
	require.ErrorIs(t, err, ErrNotOurs, "a link is no socket")
	require.NoError(t, os.Remove(path))

	require.NoError(t, os.Symlink(filepath.Join(dir, "elsewhere"), path+".lock2"))
	require.NoError(t, os.Remove(path+".lock"))
	require.NoError(t, os.Rename(path+".lock2", path+".lock"))
	_, err = Unix(path, 0o600, -1)
	require.ErrorIs(t, err, syscall.ELOOP, "a lock that is a link")
}

// TestLongestPath: the longest path that fits works.
func TestLongestPath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("x", maxPath-len(dir)-1))
	require.Len(t, path, maxPath)
	l, err := Unix(path, 0o600, -1)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Unix(path, 0o600, -1)
	require.NoError(t, err)
	_, err = Unix(path, 0o600, -1)
	require.ErrorIs(t, err, ErrInUse, "the same kind of daemon")
	require.NoError(t, first.Close())

	other, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer other.Close()
	_, err = Unix(path, 0o600, -1)
	require.ErrorIs(t, err, ErrInUse, "another program")
	require.ErrorContains(t, err, fmt.Sprintf("pid %d", os.Getpid()))
	conn, err := net.Dial("unix", path)
	require.NoError(t, err, "and it is not disturbed")
	require.NoError(t, conn.Close())
}

// TestSomeoneElses: what another user made is left alone, even by root.
func TestSomeoneElses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	if os.Geteuid() == 0 {
		require.NoError(t, os.Lchown(path, 12345, -1))
	} else {
		path = "/dev/log" // any socket of root's
		if _, err := os.Lstat(path); err != nil {
			path = "/dev/null"
		}
		require.ErrorIs(t, removeStale(path), ErrNotOurs)
		return
	}
	_, err = Unix(path, 0o600, -1)
	require.ErrorIs(t, err, ErrNotOurs)
	require.ErrorContains(t, err, "belongs to uid 12345, this daemon is uid 0")
	_, err = os.Lstat(path)
	require.NoError(t, err)
}

// TestTwoStartAtOnce: of many that start at the same time over a stale socket,
// one wins, and its socket is the one that is there.
func TestTwoStartAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for range 20 {
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		require.NoError(t, err)
		dead.SetUnlinkOnClose(false)
		require.NoError(t, dead.Close())
		type outcome struct {
			l   net.Listener
			err error
		}
		out := make(chan outcome)
		for range 8 {
			go func() {
				l, err := Unix(path, 0o600, -1)
				out <- outcome{l, err}
			}()
		}
		var won net.Listener
		for range 8 {
			o := <-out
			if o.err != nil {
				require.ErrorIs(t, o.err, ErrInUse)
				continue
			}
			require.Nil(t, won, "two winners")
			won = o.l
		}
		require.NotNil(t, won)
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, won.Close())
	}
}

func TestGroupID(t *testing.T) {
	id, err := GroupID("")
	require.NoError(t, err)
	require.Equal(t, -1, id)
	id, err = GroupID("root")
	require.NoError(t, err)
	require.Zero(t, id)
	_, err = GroupID("no-such-group-at-all")
	require.ErrorContains(t, err, "socket group")
}

func printActivated() {
	all, err := Activated()
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	for _, name := range []string{Control, Metrics} {
		for _, l := range all[name] {
			fmt.Println(name, l.Addr().Network())
		}
	}
	fmt.Println("left:", os.Getenv("LISTEN_FDS"))
}

// activated runs the test binary with sockets as systemd hands them over.
func activated(t *testing.T, names string, listeners ...net.Listener) string {
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0"`, "/proc/"+fmt.Sprint(os.Getpid())+"/exe")
	cmd.Env = append(os.Environ(), activatedEnv+"=1", "LISTEN_FDNAMES="+names, fmt.Sprintf("LISTEN_FDS=%d", len(listeners)))
	for _, l := range listeners {
		f, err := l.(interface{ File() (*os.File, error) }).File()
		require.NoError(t, err)
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestActivated(t *testing.T) {
	u, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer u.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	require.Equal(t, "control unix\ncontrol tcp\nmetrics tcp\nleft: \n", activated(t, "control:metrics:control", u, tcp, tcp))
	require.Contains(t, activated(t, "control:contrl", u, tcp), `error: systemd handed over a socket "contrl"`)
	require.Contains(t, activated(t, "", u), `error: systemd handed over a socket "LISTEN_FD_3"`)

	all, err := Activated()
	require.NoError(t, err)
	require.Empty(t, all, "without systemd there is nothing")
}

//go:build cgo

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/shmwire"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// caller has a device process make system calls, by an image that is loaded into it.
func caller(t *testing.T, dev bridge.Device) (call func(nr int, args ...int) syscall.Errno, crash func()) {
	image, err := program.Build(t.Context(), os.DirFS("testdata/syscall"), program.Options{})
	require.NoError(t, err)
	_, err = dev.Load(t.Context(), image)
	require.NoError(t, err)
	ch := port(t, dev, "syscall")
	call = func(nr int, args ...int) syscall.Errno {
		m := make([]byte, 56)
		for i, v := range append([]int{nr}, args...) {
			binary.LittleEndian.PutUint64(m[8*i:], uint64(v))
		}
		require.NoError(t, ch.Send(t.Context(), m))
		_, err := ch.Receive(t.Context(), m)
		require.NoError(t, err)
		return syscall.Errno(max(0, -int64(binary.LittleEndian.Uint64(m))))
	}
	crash = func() {
		m := make([]byte, 56)
		binary.LittleEndian.PutUint64(m, math.MaxUint64)
		require.NoError(t, ch.Send(t.Context(), m))
		_, err := ch.Receive(t.Context(), m)
		require.ErrorIs(t, err, bridge.ErrClosed)
	}
	return call, crash
}

// statusOf returns a field of each thread of a process.
func statusOf(t *testing.T, pid int, field string) map[string]bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	values := make(map[string]bool)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if v, ok := strings.CutPrefix(line, field+":"); ok {
				values[strings.Join(strings.Fields(v), " ")] = true
			}
		}
	}
	return values
}

// TestConfined: a shared device executes nothing, makes no process, socket or file, and
// looks into no other process, whatever is loaded into it; images are loaded all the same.
func TestConfined(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	device := startChild(t, "device", "--shm", path)
	dev := openShared(t, path)
	call, crash := caller(t, dev)
	require.Zero(t, call(unix.SYS_GETPID))
	require.Equal(t, syscall.EBADF, call(unix.SYS_CLOSE, -1), "allowed, and wrong")
	for name, c := range map[string][]int{
		"execve": {unix.SYS_EXECVE}, "socket": {unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM}, "ptrace": {unix.SYS_PTRACE},
		"process_vm_readv": {unix.SYS_PROCESS_VM_READV, device.Process.Pid}, "kill": {unix.SYS_KILL, device.Process.Pid, 0},
		"setuid": {unix.SYS_SETUID, 0}, "mount": {unix.SYS_MOUNT}, "seccomp": {unix.SYS_SECCOMP}, "unshare": {unix.SYS_UNSHARE, 0},
		"a process": {unix.SYS_CLONE, int(unix.SIGCHLD)}, "prctl": {unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1},
		"a file to write": {unix.SYS_OPENAT, unix.AT_FDCWD, 0, unix.O_CREAT | unix.O_WRONLY, 0o600}, "bind": {unix.SYS_BIND, 0},
		"limits": {unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 1}, "io_uring": {unix.SYS_IO_URING_SETUP, 1}, "bpf": {unix.SYS_BPF},
	} {
		require.Equal(t, syscall.EPERM, call(c[0], c[1:]...), name)
	}
	require.Equal(t, syscall.ENOSYS, call(unix.SYS_CLONE3, 0, 0))
	require.Equal(t, syscall.EFAULT, call(unix.SYS_OPENAT, unix.AT_FDCWD, 0, unix.O_RDONLY), "a file to read")
	require.Equal(t, map[string]bool{"2": true}, statusOf(t, device.Process.Pid, "Seccomp"))
	require.Equal(t, map[string]bool{"1": true}, statusOf(t, device.Process.Pid, "NoNewPrivs"))
	crash()
	require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), make([]byte, 100_000), 1), "a process ended, not its device")

	path = filepath.Join(t.TempDir(), "s")
	device = startChild(t, "device", "--shm", path, "--no-filter")
	call, _ = caller(t, openShared(t, path))
	require.NotEqual(t, syscall.EPERM, call(unix.SYS_SOCKET, -1))
	require.Equal(t, map[string]bool{"1": true}, statusOf(t, device.Process.Pid, "NoNewPrivs"))
}

// TestAnotherUser: root's device becomes the user of its setting, without
// capabilities; the socket is that user's, and another device of it takes its place.
func TestAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if os.Geteuid() != 0 {
		code, _, says := nfsim("--shm", path, "--user", "root")
		require.Equal(t, exitUsage, code)
		require.Contains(t, says, "only root may become another user")
		return
	}
	code, _, says := nfsim("--shm", path, "--user", "nobody-of-that-name")
	require.Equal(t, exitUsage, code)
	require.Contains(t, says, "no such user")
	u, err := user.Lookup("nobody")
	require.NoError(t, err)
	for range 2 {
		device := startChild(t, "device", "--shm", path, "--user", "nobody")
		id := strings.Repeat(u.Uid+" ", 4)
		require.Equal(t, map[string]bool{id[:len(id)-1]: true}, statusOf(t, device.Process.Pid, "Uid"))
		require.Equal(t, map[string]bool{"0000000000000000": true}, statusOf(t, device.Process.Pid, "CapEff"))
		require.Equal(t, map[string]bool{"0000000000000000": true}, statusOf(t, device.Process.Pid, "CapPrm"))
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, u.Uid, fmt.Sprint(st.Sys().(*syscall.Stat_t).Uid))
		dev := openShared(t, path)
		require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), make([]byte, 300_000), 1))
		device.kill()
	}
}

// activated starts a device with a socket of systemd's.
func activated(t *testing.T, l *net.UnixListener, path string) *childProcess {
	f, err := l.File()
	require.NoError(t, err)
	defer f.Close()
	return startCommand(t, func(c *exec.Cmd) {
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, os.Args[0], "--shm", path}
		c.ExtraFiles = []*os.File{f}
	}, "device")
}

// TestActivated: a socket of systemd's is served, outlives the device, and has clients wait
// for the next one; one that is for something else is refused.
func TestActivated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix(shmwire.Network, &net.UnixAddr{Name: path, Net: shmwire.Network})
	require.NoError(t, err)
	defer l.Close()
	device := activated(t, l, path)
	dev := openShared(t, path)
	require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), make([]byte, 100_000), 1))
	require.NoError(t, device.Process.Signal(syscall.SIGTERM))
	require.NoError(t, device.Wait())
	_, err = os.Lstat(path)
	require.NoError(t, err, "the socket is systemd's")
	found := make(chan error)
	go func() {
		err := dev.Reset(t.Context()) // waits in the backlog of the socket
		for err != nil && t.Context().Err() == nil {
			err = dev.Reset(t.Context()) // on a busy machine not long enough
		}
		found <- err
	}()
	activated(t, l, path)
	require.NoError(t, <-found)
	require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), make([]byte, 100_000), 2))

	wrong := activated(t, l, path+"-of-another")
	require.Equal(t, exitUsage, wrong.ended())
	other, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + "2", Net: "unix"})
	require.NoError(t, err)
	defer other.Close()
	require.Equal(t, exitUsage, activated(t, other, path+"2").ended())
}

// TestUnitsFitTheDevice: what the units say is what the program takes, and where it is
// looked for.
func TestUnitsFitTheDevice(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../deploy/systemd/" + name)
		require.NoError(t, err)
		return string(text)
	}
	service, socket := read("nfsim@.service"), read("nfsim@.socket")
	require.Contains(t, socket, "\nListenSequentialPacket=/run/nfsim/%i.sock\n")
	require.Contains(t, service, "\nExecStart=/usr/bin/nfsim --shm /run/nfsim/%i.sock $NFSIM_OPTIONS\n")
	require.Contains(t, service, fmt.Sprintf("\nRestartPreventExitStatus=%d\n", exitUsage))
	require.Contains(t, service, "\nType=notify\n")
	list, err := os.ReadFile("../../internal/shm/list.go")
	require.NoError(t, err)
	require.Contains(t, string(list), `"/run/nfsim/*.sock"`)
}

// TestManual: the page is one, and has the options.
func TestManual(t *testing.T) {
	code, page, _ := nfsim("--manual")
	require.Equal(t, exitOK, code)
	require.Contains(t, page, ".TH")
	require.Contains(t, page, "user-hosts")
}

// TestPod: the sample of a pod is what it says it is: YAML, with command lines that the
// programs take, on one socket, in a folder that all containers mount.
func TestPod(t *testing.T) {
	text, err := os.ReadFile("../../deploy/container/shared-device.yaml")
	require.NoError(t, err)
	var pod struct {
		Kind string
		Spec struct {
			Volumes    []struct{ Name string }
			Containers []struct {
				Name, Image   string
				Command, Args []string
				VolumeMounts  []struct {
					Name string
					Path string `yaml:"mountPath"`
				} `yaml:"volumeMounts"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &pod))
	require.Equal(t, "Pod", pod.Kind)
	require.Len(t, pod.Spec.Containers, 3)
	for _, c := range pod.Spec.Containers {
		require.Equal(t, "device", c.VolumeMounts[0].Name, c.Name)
		require.Equal(t, "/run/nfsim", c.VolumeMounts[0].Path, c.Name)
		require.Contains(t, strings.Join(append(c.Command, c.Args...), " "), "/run/nfsim/0.sock", c.Name)
	}
	device := pod.Spec.Containers[0].Command
	require.Equal(t, "/usr/bin/nfsim", device[0])
	root := newRoot()
	require.NoError(t, root.ParseFlags(device[1:]))
	o := &options{hosts: 16, shmMode: root.Flag("shm-mode").Value.String()}
	_, err = parseShared(o, nil)
	require.NoError(t, err)
}

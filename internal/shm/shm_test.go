//go:build linux

package shm

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBadAddress(t *testing.T) {
	long := string(make([]byte, 200))
	for _, c := range []struct {
		address, says string
		is            error
	}{
		{"shm:", "takes the path of a socket", bridge.ErrInvalid},
		{"shm:" + long, "path of 200 bytes", bridge.ErrInvalid},
		{"shm:/s?managers=2", `option "managers" is not one of user, stall-timeout`, bridge.ErrOption},
		{"shm:/s?stall-timeout=0s", "option stall-timeout=0s: ", bridge.ErrInvalid},
		{"shm:/s?user=nobody-of-that-name", "option user=nobody-of-that-name: ", bridge.ErrInvalid},
	} {
		_, err := bridge.Open(context.Background(), c.address, nil)
		require.ErrorIs(t, err, c.is, c.address)
		require.ErrorContains(t, err, c.says, c.address)
		require.ErrorIs(t, bridge.CheckAddress(c.address), c.is)
	}
	require.NoError(t, bridge.CheckAddress("shm:/run/nfsim/0.sock?user=0&stall-timeout=1s"))
}

// TestNoDevice: what is not there is said, and what to do.
func TestNoDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	_, err := bridge.Open(t.Context(), "shm:"+path, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "nfsim --shm "+path)

	l, err := net.ListenUnix(shmwire.Network, &net.UnixAddr{Name: path, Net: shmwire.Network})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = bridge.Open(t.Context(), "shm:"+path, nil)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "has gone")
	_, err = bridge.Open(t.Context(), "shm:"+t.TempDir(), nil)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	require.ErrorContains(t, err, "this is no socket")

	other := filepath.Join(t.TempDir(), "s")
	stream, err := net.Listen("unix", other)
	require.NoError(t, err)
	defer stream.Close()
	_, err = bridge.Open(t.Context(), "shm:"+other, nil)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	require.ErrorContains(t, err, "no socket of a shared device")
}

// device answers each connection as a test says.
func device(t *testing.T, answer func(c *net.UnixConn)) string {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix(shmwire.Network, &net.UnixAddr{Name: path, Net: shmwire.Network})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, shmwire.Size))
			answer(c)
			_, _ = c.Read(make([]byte, 1)) // until the client has ended
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "shm:" + path
}

// memory returns a memfd.
func memory(t *testing.T, size int64, seals int) int {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, unix.Ftruncate(fd, size))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	require.NoError(t, err)
	return fd
}

// TestWrongDevice: what is no device, or another one, or a liar, is refused with an error
// of its own, and leaves nothing open.
func TestWrongDevice(t *testing.T) {
	const all = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer syscall.Close(pair[0])
	defer syscall.Close(pair[1])
	size := uint64(1 << 20)
	hello := &shmwire.Message{Kind: shmwire.Hello, Epoch: 1, Size: size}
	send := func(m *shmwire.Message, files ...int) func(*net.UnixConn) {
		return func(c *net.UnixConn) { _ = shmwire.Send(c, m, files...) }
	}
	raw := func(b ...byte) func(*net.UnixConn) { return func(c *net.UnixConn) { _, _ = c.Write(b) } }
	for _, c := range []struct {
		name   string
		answer func(*net.UnixConn)
		is     error
		says   string
	}{
		{"another protocol", raw([]byte("HTTP/1.1 400 Bad Request")...), shmwire.ErrForeign, ""},
		{"another version", raw('N', 'S', 'H', 'M', 9, 0, 1, 0), bridge.ErrABI, "9 in place of 6"},
		{"no place", send(&shmwire.Message{Kind: shmwire.Hello, Status: uint16(abi.ErrBusy)}), bridge.ErrBusy, "no place"},
		{"another refusal", send(&shmwire.Message{Kind: shmwire.Hello, Status: uint16(abi.ErrNoMemory)}), bridge.ErrNoMemory, "refuses"},
		{"unknown status", send(&shmwire.Message{Kind: shmwire.Hello, Status: 9999}), bridge.ErrProtocol, ""},
		{"another answer", send(&shmwire.Message{Kind: shmwire.Fence}, pair[0], pair[1]), shmwire.ErrForeign, ""},
		{"no descriptors", send(hello), shmwire.ErrForeign, "0 descriptors in place of 2"},
		{"not memory", send(hello, pair[0], pair[1]), nil, "may change its size"},
		{"not sealed", send(hello, memory(t, 1<<20, unix.F_SEAL_GROW), pair[1]), nil, "may change its size"},
		{"too short", send(hello, memory(t, 1<<19, all), pair[1]), nil, "memory of 524288 bytes in place of 1048576"},
		{"no device in it", send(hello, memory(t, 1<<20, all), pair[1]), bridge.ErrDeviceLost, "not ready"},
		{"gone", func(c *net.UnixConn) { _ = c.Close() }, bridge.ErrDeviceLost, "hung up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := descriptors(t)
			address := device(t, c.answer)
			_, err := bridge.Open(t.Context(), address, nil)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.ErrorContains(t, err, c.says)
			require.LessOrEqual(t, descriptors(t), before+2, "the listener and its connection")
		})
	}
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// TestSilentDevice: one that says nothing is waited for as long as the context lasts.
func TestSilentDevice(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	address := device(t, func(*net.UnixConn) {
		asked.Add(1)
		cancel()
	})
	_, err := bridge.Open(ctx, address, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, asked.Load())
}

// TestLateDevice: a client waits for an island that has no processor, as long as its context says.
func TestLateDevice(t *testing.T) {
	refuse := func(s abi.Status) shmwire.Message { return shmwire.Refusal(shmwire.Hello, s, shmwire.Bound{}) }
	var asked atomic.Int32
	address := device(t, func(c *net.UnixConn) {
		m := refuse(abi.ErrTimeout)
		if asked.Add(1) == 3 {
			m = refuse(abi.ErrNoMemory)
		}
		_ = shmwire.Send(c, &m)
	})
	_, err := bridge.Open(t.Context(), address, nil)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.NotErrorIs(t, err, bridge.ErrTargetTimeout)
	require.EqualValues(t, 3, asked.Load())

	ctx, cancel := context.WithCancel(t.Context())
	address = device(t, func(c *net.UnixConn) {
		if asked.Add(1) == 6 {
			cancel()
			return
		}
		m := refuse(abi.ErrTimeout)
		_ = shmwire.Send(c, &m)
	})
	_, err = bridge.Open(ctx, address, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, bridge.ErrTargetTimeout)
	require.ErrorContains(t, err, "an island of the device has no processor")
	require.EqualValues(t, 6, asked.Load())
}

// TestUsualPlaces: a list of devices takes no time and disturbs nobody.
func TestUsualPlaces(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := bridge.Devices(ctx)
	require.NoError(t, err)
}

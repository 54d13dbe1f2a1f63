//go:build cgo

package sim

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// works sends a message around a device.
func works(t *testing.T, dev bridge.Device) {
	t.Helper()
	ch, err := dev.Subscribe(t.Context(), abi.TargetLoopback)
	require.NoError(t, err)
	require.NoError(t, ch.Send(t.Context(), []byte("hello")))
	buf := make([]byte, 56)
	n, err := ch.Receive(t.Context(), buf)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buf[:n]))
	require.NoError(t, ch.Close())
}

// tryOpen opens a device with a log, which takes a pipe.
func tryOpen(options string) (bridge.Device, error) {
	return bridge.Open(context.Background(), "sim:"+options, &bridge.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

// leave lets this process have n more descriptors; the rest is given back with
// the function it returns.
func leave(t *testing.T, n int) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: old.Max}))
	var taken []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			break
		}
		taken = append(taken, fd)
	}
	for _, fd := range taken[:n] {
		unix.Close(fd)
	}
	return func() {
		for _, fd := range taken[n:] {
			unix.Close(fd)
		}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	}
}

// TestOpenWithoutDescriptors: with 0, 1, 2, … descriptors left an open fails by
// name until there are enough; nothing stays behind, and devices that are open
// continue and reset.
func TestOpenWithoutDescriptors(t *testing.T) {
	bridgetest.LeakCheck(t)
	other, err := tryOpen("")
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	opened := false
	for n := 0; !opened; n++ {
		require.Less(t, n, 20)
		restore := leave(t, n)
		dev, err := tryOpen("")
		again := other.Reset(context.Background())
		restore()
		require.NoError(t, again, "a reset takes no descriptor")
		works(t, other)
		if opened = err == nil; opened {
			require.Greater(t, n, 2, "it needs a few")
			works(t, dev)
			require.NoError(t, dev.Close())
			continue
		}
		require.True(t, errors.Is(err, bridge.ErrNoMemory) || errors.Is(err, syscall.EMFILE), "%d left: %v", n, err)
		dev, err = tryOpen("")
		require.NoError(t, err, "with enough of them")
		require.NoError(t, dev.Close())
	}
}

// TestOpenWithoutAddressSpace: no room for the device's memory is ErrNoMemory,
// and room again is enough.
func TestOpenWithoutAddressSpace(t *testing.T) {
	bridgetest.LeakCheck(t)
	const size = 256 << 30
	var taken [][]byte
	for {
		mem, err := unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOMEM)
			break
		}
		taken = append(taken, mem)
	}
	_, err := tryOpen("?emem=256GiB")
	for _, mem := range taken {
		require.NoError(t, unix.Munmap(mem))
	}
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	dev, err := tryOpen("?emem=256GiB")
	require.NoError(t, err)
	works(t, dev)
	require.NoError(t, dev.Close())
}

// stuck is a log handler that does not return before its channel is closed.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// TestCloseWithABlockedLog: a handler that does not return holds up neither the
// device's lines, nor its calls, nor Close; the lines without room are counted.
func TestCloseWithABlockedLog(t *testing.T) {
	bridgetest.LeakCheck(t)
	handler := make(stuck)
	defer close(handler)
	dev, err := bridge.Open(t.Context(), "sim:", &bridge.Options{Logger: slog.New(slog.NewTextHandler(handler, nil))})
	require.NoError(t, err)
	log, err := dev.Subscribe(t.Context(), abi.TargetLog)
	require.NoError(t, err)
	buf := make([]byte, 56)
	for dev.Stats().LogDropped == 0 {
		require.NoError(t, log.Send(t.Context(), []byte("a line")))
		_, err := log.Receive(t.Context(), buf)
		require.NoError(t, err)
	}
	require.NoError(t, dev.Close())
}

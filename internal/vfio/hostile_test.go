//go:build linux

package vfio

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/pci"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a server says to a request; nil: it hangs up.
type answer func(h header, payload []byte) []byte

// reply is an answer with a payload.
func reply(h header, payload []byte) []byte { return message(h.id, h.command, flagReply, payload) }

// refusal is one with an errno.
func refusal(h header, errno syscall.Errno) []byte {
	b := message(h.id, h.command, flagReply|flagError, nil)
	order.PutUint32(b[12:], uint32(errno))
	return b
}

// wellBehaved answers as a device does, as far as its registers are read.
func wellBehaved(h header, payload []byte) []byte {
	switch h.command {
	case cmdVersion:
		return reply(h, append(words(0), "{}\x00"...))
	case cmdDeviceInfo:
		return reply(h, words(16, isPCI|canReset, 9, 5))
	case cmdRegionRead:
		value := map[uint64]uint32{pci.RegVersion: pci.Major << 16}[order.Uint64(payload)]
		if order.Uint32(payload[8:]) == regionConfig {
			value = pci.Device<<16 | pci.Vendor
		}
		return reply(h, append(payload, words(value)...))
	case cmdRegionInfo:
		return reply(h, append(words(32, 0, order.Uint32(payload[8:]), 0), make([]byte, 16)...))
	}
	return reply(h, payload)
}

// serve answers one client, and returns the path of its socket.
func serve(t *testing.T, say answer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			talk(c, say)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return path
}

func talk(c *net.UnixConn, say answer) {
	for {
		var b [headerSize]byte
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return
		}
		h, err := parseHeader(b[:])
		payload := make([]byte, h.size-headerSize)
		if _, e := io.ReadFull(c, payload); errors.Join(err, e) != nil {
			return
		}
		out := say(h, payload)
		if out == nil || fdpass.Send(c, out) != nil {
			return
		}
	}
}

// TestLies: whatever the serving process answers, Open ends with an error that says what was wrong.
func TestLies(t *testing.T) {
	to := func(command uint16, say answer) answer {
		return func(h header, payload []byte) []byte {
			if h.command == command {
				return say(h, payload)
			}
			return wellBehaved(h, payload)
		}
	}
	hangUp := func(header, []byte) []byte { return nil }
	empty := func(h header, _ []byte) []byte { return reply(h, nil) }
	refused := func(h header, _ []byte) []byte { return refusal(h, syscall.EPERM) }
	stranger := func(h header, p []byte) []byte { h.id++; return wellBehaved(h, p) }
	other := func(h header, p []byte) []byte { return message(h.id, cmdReset, flagReply, p) }
	huge := func(h header, p []byte) []byte { b := reply(h, p); order.PutUint32(b[4:], 1<<30); return b }
	tiny := func(h header, p []byte) []byte { b := reply(h, p); order.PutUint32(b[4:], 3); return b }
	ones := func(h header, p []byte) []byte { return reply(h, append(p, words(^uint32(0))...)) }
	for name, c := range map[string]struct {
		say  answer
		want error
	}{
		"hangs up at once": {to(cmdVersion, hangUp), bridge.ErrDeviceLost}, "no version": {to(cmdVersion, empty), bridge.ErrABI},
		"a later version":     {to(cmdVersion, func(h header, _ []byte) []byte { return reply(h, words(1)) }), bridge.ErrABI},
		"refuses":             {to(cmdVersion, refused), syscall.EPERM},
		"another id":          {to(cmdDeviceInfo, stranger), bridge.ErrDeviceLost},
		"another command":     {to(cmdDeviceInfo, other), bridge.ErrDeviceLost},
		"a huge answer":       {to(cmdDeviceInfo, huge), syscall.EPROTO},
		"an answer too short": {to(cmdDeviceInfo, tiny), syscall.EPROTO},
		"no description":      {to(cmdDeviceInfo, empty), bridge.ErrFault},
		"no PCI function":     {to(cmdDeviceInfo, func(h header, _ []byte) []byte { return reply(h, words(16, 1, 9, 5)) }), bridge.ErrABI},
		"no reset":            {to(cmdReset, refused), syscall.EPERM},
		"registers of ones":   {to(cmdRegionRead, ones), bridge.ErrABI},
		"no registers":        {to(cmdRegionRead, empty), bridge.ErrFault},
		"another device":      {wellBehaved, bridge.ErrABI}, // its ID register is zero
		"goes away":           {to(cmdRegionWrite, hangUp), bridge.ErrDeviceLost},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bridge.Open(t.Context(), "vfio-user:"+serve(t, c.say), nil)
			require.ErrorIs(t, err, c.want)
		})
	}
}

// TestAsksBack: a server that asks for memory of this process is refused, and its answer still found.
func TestAsksBack(t *testing.T) {
	const dmaRead = 11
	path := serve(t, func(h header, payload []byte) []byte {
		if h.command != cmdVersion {
			return nil
		}
		return append(message(7, dmaRead, 0, make([]byte, 16)), wellBehaved(h, payload)...)
	})
	c, err := dial(t.Context(), path)
	require.NoError(t, err)
	require.True(t, c.Alive())
	c.close()
	require.False(t, c.Alive())
}

// TestNobodyThere: a context that has ended, and a socket that is not there.
func TestNobodyThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dial(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
	_, err = newPort(ctx, options{path: path}, nil)
	require.ErrorIs(t, err, bridge.ErrWithdrawn)
	require.ErrorIs(t, err, context.Canceled)
	_, err = dial(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "nfsim --vfio-user")
}

// TestNobodyAnswers: the end of the time that a reset gives a process is not that of the caller's context.
func TestNobodyAnswers(t *testing.T) {
	for _, withdrawn := range []bool{false, true} {
		within, cancel := context.WithCancel(t.Context())
		path := serve(t, func(header, []byte) []byte {
			cancel()
			<-within.Done()
			return nil
		})
		ctx := t.Context()
		if withdrawn {
			ctx = within
		}
		p := &port{Port: arena.Port{Path: path}}
		err := p.attach(ctx, within)
		require.Error(t, err)
		require.Equal(t, withdrawn, errors.Is(err, bridge.ErrWithdrawn), err)
	}
}

// TestStuffed: a doorbell does not wait for a process that reads nothing; it is one that is lost.
func TestStuffed(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fds[0]), "socket")
	socket, err := net.FileConn(f)
	require.NoError(t, errors.Join(err, f.Close()))
	defer syscall.Close(fds[1])
	c := &conn{socket: socket.(*net.UnixConn)}
	c.raw, err = c.socket.SyscallConn()
	require.NoError(t, err)
	for range 1 << 20 {
		if !c.Alive() {
			break
		}
		c.post(pci.BarRegisters, pci.RegDoorbell, 1)
	}
	require.ErrorIs(t, *c.broken.Load(), bridge.ErrDeviceLost)
	c.close()
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]error{
		"vfio-user:": bridge.ErrInvalid, "vfio-user:" + strings.Repeat("x", 108): bridge.ErrInvalid,
		"vfio-user:s?node=1.0.0": bridge.ErrOption, "vfio-user:s?stall-timeout=0": bridge.ErrInvalid,
	} {
		a, err := bridge.ParseAddress(address)
		require.NoError(t, err)
		_, err = parse(a)
		require.ErrorIs(t, err, want, address)
	}
}

// TestKickIsTakenBack: a context that ends as its call does leaves later requests their time.
func TestKickIsTakenBack(t *testing.T) {
	c, err := dial(t.Context(), serve(t, wellBehaved))
	require.NoError(t, err)
	defer c.close()
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		undo := c.kickAtEnd(ctx)
		cancel()
		undo()
		runtime.Gosched() // to what might still be on its way
		c.timing.Lock()
		hasty := c.hasty
		c.timing.Unlock()
		require.False(t, hasty)
	}
}

// TestBusyFunction: a wait for a function that stays busy ends with the error of its context, whatever
// the cause of that.
func TestBusyFunction(t *testing.T) {
	c, err := dial(t.Context(), serve(t, func(h header, payload []byte) []byte {
		if h.command == cmdRegionRead && order.Uint64(payload) == pci.RegStatus {
			return reply(h, append(payload, words(pci.StatusBusy)...))
		}
		return wellBehaved(h, payload)
	}))
	require.NoError(t, err)
	defer c.close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.EOF)
	require.ErrorIs(t, (&function{bus: c}).control(ctx, pci.ControlReset, time.Minute), context.Canceled)
}

//go:build cgo

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/beside"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// childEnv makes this program a device, or a client of one, in place of its tests.
const childEnv = "NFSIM_TEST_CHILD"

// child is what the program does as a child; its arguments follow.
func child(role string) int {
	if role == "device" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if role == "gifts" {
		fmt.Println(takesGifts(os.Args[1]))
		return exitFailed
	}
	dev, err := bridge.Open(context.Background(), os.Args[1], nil)
	if err != nil {
		fmt.Println(err)
		return exitFailed
	}
	ch, err := dev.Subscribe(context.Background(), abi.TargetLoopback)
	for data, n := make([]byte, 3<<20), 0; err == nil; n++ {
		if err = ch.SendInd(context.Background(), data); err == nil {
			err = ch.ReceiveInd(context.Background(), data)
		}
		if n == 2 {
			fmt.Println("moving") // the test kills it
		}
	}
	return exitFailed
}

// childProcess is one.
type childProcess struct {
	*exec.Cmd
	says *bufio.Scanner
}

// startChild starts a child and waits until it has said something.
func startChild(t *testing.T, role string, args ...string) *childProcess {
	t.Helper()
	p := startCommand(t, func(c *exec.Cmd) { c.Args = append(c.Args, args...) }, role)
	require.True(t, p.says.Scan(), "the %s says nothing", role)
	return p
}

// startCommand starts a child as a test changes it.
func startCommand(t *testing.T, change func(*exec.Cmd), role string) *childProcess {
	t.Helper()
	p := &childProcess{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), childEnv+"="+role)
	change(p.Cmd)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	p.says = bufio.NewScanner(out)
	t.Cleanup(p.kill)
	return p
}

// ended returns the exit code of a child that is to end by itself.
func (p *childProcess) ended() int {
	_ = p.Wait() // the code says it
	return p.ProcessState.ExitCode()
}

// kill ends the child at once.
func (p *childProcess) kill() {
	if p.ProcessState != nil {
		return
	}
	_ = p.Process.Kill()
	_ = p.Wait()
}

func openShared(t *testing.T, path string) bridge.Device {
	t.Helper()
	dev, err := bridge.Open(t.Context(), "shm:"+path, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// port starts a program with one port and subscribes it.
func port(t *testing.T, dev bridge.Device, name string) bridge.Channel {
	t.Helper()
	p, err := dev.Start(t.Context(), bridge.Program{Name: name, Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(t.Context(), p.First)
	require.NoError(t, err)
	return ch
}

// echo sends a pattern there and back, in memory that is or is not the device's, too.
func echo(ctx context.Context, ch bridge.Channel, buf []byte, seed uint64) error {
	pattern.Fill(buf, 0, seed)
	if err := ch.SendInd(ctx, buf); err != nil {
		return err
	}
	clear(buf)
	if err := ch.ReceiveInd(ctx, buf); err != nil {
		return err
	}
	if at := pattern.Diff(buf, 0, seed); at >= 0 {
		return fmt.Errorf("byte %d is wrong", at)
	}
	return nil
}

// taken asks a sink how many messages and bytes of transfers it has.
func taken(t *testing.T, ch bridge.Channel) (messages, bytes uint64) {
	t.Helper()
	answer := make([]byte, abi.PayloadSize)
	require.NoError(t, ch.Send(t.Context(), []byte("SINKSTAT")))
	_, err := ch.Receive(t.Context(), answer)
	require.NoError(t, err)
	return binary.LittleEndian.Uint64(answer), binary.LittleEndian.Uint64(answer[8:])
}

// TestClientKilled: clients that are killed in the middle of transfers leave their place,
// and the other client, all of whose messages and bytes arrive, does not notice.
func TestClientKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	startChild(t, "device", "--shm", path, "--hosts", "2")
	dev := openShared(t, path)
	sink, loop := port(t, dev, "sink"), port(t, dev, "loopback")
	buf := make([]byte, 300_000)
	var messages, bytes uint64
	for round := range uint64(5) {
		var client *childProcess
		for client == nil { // the device sees the end of the one before soon
			if other, err := bridge.Open(t.Context(), "shm:"+path, nil); err == nil {
				require.NoError(t, other.Close())
				client = startChild(t, "client", "shm:"+path)
			} else {
				require.ErrorIs(t, err, bridge.ErrBusy)
			}
		}
		require.Equal(t, "moving", client.says.Text())
		for i := range uint64(20) {
			if i == 10 {
				client.kill()
			}
			require.NoError(t, echo(t.Context(), loop, buf, round*100+i))
			require.NoError(t, sink.Send(t.Context(), buf[:8]))
			require.NoError(t, sink.SendInd(t.Context(), buf))
			messages, bytes = messages+1, bytes+uint64(len(buf))
		}
	}
	gotMessages, gotBytes := taken(t, sink)
	require.Equal(t, messages, gotMessages)
	require.Equal(t, bytes, gotBytes)
}

// TestDeviceKilled: when the device process dies, calls end at once with one error, and no
// call that ended well was lost: the device of the next one takes over where Reset finds it.
func TestDeviceKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	device := startChild(t, "device", "--shm", path)
	dev := openShared(t, path)
	region, err := dev.Alloc(1 << 20)
	require.NoError(t, err)
	for round := range uint64(3) {
		var calls sync.WaitGroup
		var done atomic.Uint64
		moving := make(chan struct{})
		for i, buf := range [][]byte{region.Bytes(), make([]byte, 1<<20), make([]byte, 5000)} {
			ch := port(t, dev, "loopback")
			calls.Go(func() {
				for err := error(nil); ; {
					if err = echo(t.Context(), ch, buf, round+uint64(i)); err != nil {
						assert.ErrorIs(t, err, bridge.ErrDeviceLost)
						return
					}
					if done.Add(1) == 20 {
						close(moving)
					}
				}
			})
		}
		<-moving
		device.kill()
		calls.Wait()
		_, err := dev.Health()
		require.ErrorIs(t, err, bridge.ErrDeviceLost)
		require.ErrorIs(t, dev.Reset(t.Context()), bridge.ErrDeviceLost, "there is none")
		device = startChild(t, "device", "--shm", path) // the socket of the one before is there
		require.NoError(t, dev.Reset(t.Context()))
		require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), region.Bytes(), round))
	}
	require.EqualValues(t, 1, dev.Stats().Regions)
}

// TestBlockedCallsEndSoon: calls that are blocked when the device process dies end at once.
func TestBlockedCallsEndSoon(t *testing.T) {
	e := bridgetest.NewEnv(t)
	path := filepath.Join(t.TempDir(), "s")
	device := startChild(t, "device", "--shm", path, "--beat", "60s")
	dev := openShared(t, path)
	region, err := dev.Alloc(1 << 20)
	require.NoError(t, err)
	var hold [5]bridge.Channel
	for i := range hold {
		hold[i] = port(t, dev, "hold")
	}
	calls := map[string]func() error{
		"send":                 func() error { return hold[0].Send(e.Ctx(), []byte("x")) },
		"receive":              func() error { _, err := hold[1].Receive(e.Ctx(), make([]byte, abi.PayloadSize)); return err },
		"transfer of a region": func() error { return hold[2].SendInd(e.Ctx(), region.Bytes()) },
		"transfer":             func() error { return hold[3].SendInd(e.Ctx(), make([]byte, 1<<20)) },
		"transfer back":        func() error { return hold[4].ReceiveInd(e.Ctx(), make([]byte, 1<<20)) },
	}
	for name, err := range beside.Ends(t, calls, func() { e.UntilBlocked(dev, len(calls)) }, device.kill) {
		require.ErrorIs(t, err, bridge.ErrDeviceLost, name)
	}
}

// TestSharedEnds: SIGTERM ends the device and its socket.
func TestSharedEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	device := startChild(t, "device", "--shm", path, "--shm-mode", "0600")
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), st.Mode().Perm())
	dev := openShared(t, path)
	hold := port(t, dev, "hold")
	blocked := make(chan error, 1)
	go func() { blocked <- hold.Send(context.Background(), []byte("x")) }()
	require.NoError(t, device.Process.Signal(syscall.SIGTERM))
	require.NoError(t, device.Wait())
	require.ErrorIs(t, <-blocked, bridge.ErrDeviceLost)
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestSharedSocket: one that a process left is replaced; what is somebody's is not.
func TestSharedSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix(shmwire.Network, &net.UnixAddr{Name: path, Net: shmwire.Network})
	require.NoError(t, err)
	code, _, says := nfsim("--shm", path)
	require.Equal(t, exitFailed, code)
	require.Contains(t, says, "another process listens there")
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	again, err := listenShared(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, again.Close())

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, says = nfsim("--shm", file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, says, "no socket")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(file, 12345, -1))
		code, _, says = nfsim("--shm", file)
		require.Equal(t, exitFailed, code)
		require.Contains(t, says, "belongs to another user (uid 12345)")
	}
	for _, args := range [][]string{{"--shm", path, "--vfio-user", path}, {"--shm", path, "--hosts", "0"}, {"--shm", path, "--hosts", "65"}, {"--shm", path, "--shm-mode", "rw"}, {"--shm", path, "--slots", "1000"}} {
		code, _, _ = nfsim(args...)
		require.Equal(t, exitUsage, code, "%v", args)
	}
}

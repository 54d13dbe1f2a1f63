//go:build cgo

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/beside"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// TestBounded: every call ends soon after its context while the device process stands still. Its
// heartbeat is overdue after five minutes only, so that nothing but the context ends a call.
func TestBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	p := startChild(t, "device", "--shm", path, "--hosts", "16", "--user-hosts", "16", "--beat", "60s")
	stopped := func([]*beside.World) (leave func()) { return standStill(t, p) }
	for name, enter := range map[string]func([]*beside.World) func(){
		"stopped": stopped, "resetting": beside.Resetting(stopped), "closing": beside.Closing(stopped),
	} {
		t.Run(name, func(t *testing.T) {
			beside.Bounded(t, beside.Bounds{
				Open:  func(ctx context.Context) (*beside.World, error) { return beside.OpenDevice(ctx, "shm:"+path, "Fabric") },
				At:    8,
				Enter: enter,
				Waits: beside.Waits,
			})
		})
	}
}

// TestBoundedOfANode: the same where the device is a node of a fabric of processes, or another node
// has it.
func TestBoundedOfANode(t *testing.T) {
	p := startNodes(t, "--beat", "60s")
	dev := p.open(t) // there is a way to the other node
	require.NoError(t, dev.Close())
	for address, stops := range map[string]*childProcess{"": p.near, "?node=1.0.0": p.near} {
		t.Run("at"+address, func(t *testing.T) {
			beside.Bounded(t, beside.Bounds{
				Open:  func(ctx context.Context) (*beside.World, error) { return beside.OpenDevice(ctx, "shm:"+p.path+address) },
				At:    4,
				Enter: func([]*beside.World) (leave func()) { return standStill(t, stops) },
				Waits: beside.Waits,
			})
		})
	}
}

// TestBoundedOfANodeByLoss: with the usual heartbeat the calls that need an answer of a device end, too:
// as soon as those of a near one where the own node's process has ended, else when the far heartbeat is
// overdue.
func TestBoundedOfANodeByLoss(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		enter   func(*pair) func()
		lost    time.Duration
	}{
		"near stopped":             {"", func(p *pair) func() { return standStill(t, p.near) }, beside.Lost},
		"near killed":              {"", func(p *pair) func() { p.near.kill(); return func() {} }, beside.Lost},
		"near stopped, far device": {"?node=1.0.0", func(p *pair) func() { return standStill(t, p.near) }, beside.Lost},
		"near killed, far device":  {"?node=1.0.0", func(p *pair) func() { p.near.kill(); return func() {} }, beside.Lost},
		"far stopped, far device":  {"?node=1.0.0", func(p *pair) func() { return standStill(t, p.far) }, 5500 * time.Millisecond},
		"far killed, far device":   {"?node=1.0.0", func(p *pair) func() { p.far.kill(); return func() {} }, 5500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var p *pair
			beside.Bounded(t, beside.Bounds{
				Open: func(ctx context.Context) (*beside.World, error) {
					if p == nil || p.near.ProcessState != nil || p.far.ProcessState != nil {
						p = startNodes(t)
						dev := p.open(t)
						require.NoError(t, dev.Close())
					}
					return beside.OpenDevice(ctx, "shm:"+p.path+c.address)
				},
				At:    12,
				Enter: func([]*beside.World) func() { return c.enter(p) },
				Waits: beside.Waits, Lost: c.lost,
			})
			p.near.kill()
			p.far.kill()
		})
	}
}

// alone opens worlds whose devices have processes of their own.
type alone struct {
	kind     string // of the address, and the flag of the process
	flags    []string
	children map[*beside.World]*childProcess
}

func newAlone(kind string, flags ...string) *alone {
	return &alone{kind, flags, make(map[*beside.World]*childProcess)}
}

func (a *alone) open(t *testing.T) func(context.Context) (*beside.World, error) {
	return func(ctx context.Context) (*beside.World, error) {
		path := filepath.Join(t.TempDir(), "s")
		p := startCommand(t, func(c *exec.Cmd) {
			c.Args = append(append(c.Args, "--"+a.kind, path), a.flags...)
			_, err := c.StdinPipe() // it stays open until the child is killed
			require.NoError(t, err)
		}, "device")
		require.True(t, p.says.Scan(), "the device says nothing")
		w, err := beside.OpenDevice(ctx, a.kind+":"+path, "Fabric")
		if err != nil {
			return nil, err
		}
		a.children[w] = p
		end := w.End
		w.End = func() error {
			defer p.kill()
			return end()
		}
		return w, nil
	}
}

// stopped is a state in which the processes stand still.
func (a *alone) stopped(t *testing.T) func([]*beside.World) func() {
	return func(all []*beside.World) func() {
		var leave []func()
		for _, w := range all {
			leave = append(leave, standStill(t, a.children[w]))
		}
		return func() {
			for _, one := range leave {
				one()
			}
		}
	}
}

// killed is a state in which the processes have ended.
func (a *alone) killed(all []*beside.World) func() {
	for _, w := range all {
		a.children[w].kill()
	}
	return func() {}
}

// TestBoundedOfAFunction: every call ends soon after its context where the process of a PCI function
// stands still.
func TestBoundedOfAFunction(t *testing.T) {
	a := newAlone("vfio-user", "--beat", "60s")
	beside.Bounded(t, beside.Bounds{Open: a.open(t), At: 32, Enter: a.stopped(t), Waits: beside.Waits})
}

// TestBoundedByLoss: with the usual heartbeat the calls that need an answer of the device process end,
// too, shared or driven as a PCI function. TestBounded has a shared one that is reset and closed. One kind
// is stopped while it is full.
func TestBoundedByLoss(t *testing.T) {
	for _, kind := range []string{"shm", "vfio-user"} {
		a := newAlone(kind, "--slots", "16", "--microengines", "1", "--contexts", "16")
		stopped := a.stopped(t)
		for name, enter := range map[string]func([]*beside.World) func(){
			"stopped": stopped, "resetting": beside.Resetting(stopped), "closing": beside.Closing(stopped),
			"computing": beside.ComputingElsewhere(t), "killed": a.killed, "full": beside.Full(0, beside.Serving), "full and stopped": beside.Full(0, stopped),
		} {
			if kind == "shm" && (name == "resetting" || name == "closing") || kind == "vfio-user" && name == "full and stopped" {
				continue
			}
			t.Run(kind+"/"+name, func(t *testing.T) {
				beside.Bounded(t, beside.Bounds{Open: a.open(t), At: 32, Enter: enter, Waits: beside.Waits, Lost: beside.Lost})
			})
		}
	}
}

// standStill stops a child, and returns what resumes it.
func standStill(t *testing.T, p *childProcess) (goOn func()) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	require.NoError(t, unix.Waitid(unix.P_PID, p.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil))
	return func() { require.NoError(t, p.Process.Signal(syscall.SIGCONT)) }
}

// TestLeftBehind: what a call did after its context had ended is taken back, and no other call meets it.
func TestLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	p := startChild(t, "device", "--shm", path, "--beat", "60s")
	dev, err := nfcomms.Open(t.Context(), "shm:"+path)
	require.NoError(t, err)
	defer dev.Close()
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := dev.Subscribe(ctx, nfcomms.Loopback); return err },
		func(ctx context.Context) error {
			_, err := dev.Start(ctx, nfcomms.Program{Name: "loopback", First: 77, Targets: 1})
			return err
		},
		func(ctx context.Context) error {
			_, err := dev.Run(ctx, nfcomms.Program{Name: "loopback", First: 78})
			return err
		},
		func(ctx context.Context) error { _, err := dev.Listen(ctx, "name"); return err },
	} {
		goOn := standStill(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := call(ctx)
		require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, call(ctx), nfcomms.ErrWithdrawn)
		cancel()
		goOn()
		ctx, cancel = context.WithCancel(t.Context())
		require.NoError(t, call(ctx), "what the device holds was taken back")
		cancel()
	}
}

// TestSharedDeviceStopped: a device process that stands still is noticed by every call that waits for it,
// a reset of it ends with its context, and a resumed one serves the next epoch.
func TestSharedDeviceStopped(t *testing.T) {
	e := bridgetest.NewEnv(t)
	path := filepath.Join(t.TempDir(), "s")
	p := startChild(t, "device", "--shm", path)
	dev, err := nfcomms.Open(e.Ctx(), "shm:"+path)
	require.NoError(t, err)
	defer dev.Close()
	region, err := dev.Alloc(1 << 20)
	require.NoError(t, err)
	var chs [4]*nfcomms.Channel
	for i := range chs {
		p, err := dev.Run(e.Ctx(), nfcomms.Program{Name: "loopback"})
		require.NoError(t, err)
		chs[i] = p.Channels[0]
	}
	goOn := standStill(t, p)
	for _, call := range []*bridgetest.Pending{
		bridgetest.Call("send", func() error { return chs[0].Send(e.Ctx(), []byte("message")) }),
		bridgetest.Call("receive", func() error { _, err := chs[1].Receive(e.Ctx(), make([]byte, 56)); return err }),
		bridgetest.Call("transfer", func() error { return chs[2].SendInd(e.Ctx(), region.Bytes()) }),
		bridgetest.Call("transfer of other memory", func() error { return chs[3].SendInd(e.Ctx(), make([]byte, 1<<20)) }),
		bridgetest.Call("programs", func() error { _, err := admin.Programs(e.Ctx(), dev); return err }),
	} {
		require.ErrorIs(t, e.Wait(call), nfcomms.ErrDeviceLost)
	}
	short, cancel := context.WithTimeout(e.Ctx(), 10*time.Millisecond)
	defer cancel()
	require.Error(t, dev.Reset(short))
	require.Error(t, short.Err())
	_, err = dev.Subscribe(e.Ctx(), nfcomms.Loopback)
	require.ErrorIs(t, err, nfcomms.ErrDeviceLost)
	goOn()
	require.NoError(t, dev.Reset(e.Ctx()))
	ch, err := dev.Subscribe(e.Ctx(), nfcomms.Loopback)
	require.NoError(t, err)
	require.NoError(t, ch.SendInd(e.Ctx(), region.Bytes()))
}

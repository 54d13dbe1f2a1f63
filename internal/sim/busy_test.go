//go:build cgo

package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// journal is what a device logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// openLogged opens a device whose log is kept.
func openLogged(t *testing.T, options string) (bridge.Device, *journal) {
	t.Helper()
	j := &journal{}
	dev, err := bridge.Open(t.Context(), "sim:"+options, &bridge.Options{Logger: slog.New(slog.NewTextHandler(j, nil))})
	require.NoError(t, err)
	return dev, j
}

// words are a page of this process that a program computes beside until its first byte is set, which the
// end of the test does.
func words(t *testing.T) []byte {
	t.Helper()
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { page[0] = 1 }) // the page stays: a program may look at it once more
	return page
}

// addressOf is where a program finds a page.
func addressOf(page []byte) uint64 { return uint64(reflect.ValueOf(page).Pointer()) }

// begin starts a program on a target with an argument. Its island may be silent before the device could
// say that it started.
func begin(ctx context.Context, t *testing.T, dev bridge.Device, name string, first bridge.Target, argument uint64) bridge.Process {
	t.Helper()
	p, err := dev.Start(ctx, bridge.Program{Name: name, First: first, Targets: 1, Argument: argument})
	if err != nil {
		require.ErrorIs(t, err, bridge.ErrDeviceLost)
	}
	return p
}

// stopBriefly asks a process to stop, and gives up once it was asked: a call whose context ended before
// is made again, with twice the time.
func stopBriefly(ctx context.Context, t *testing.T, dev bridge.Device, id bridge.ProcessID) error {
	t.Helper()
	for brief := 10 * time.Millisecond; ; brief *= 2 {
		short, cancel := context.WithTimeout(ctx, brief)
		err := dev.Stop(short, id)
		cancel()
		if !errors.Is(err, bridge.ErrWithdrawn) {
			return err
		}
		require.NoError(t, ctx.Err())
	}
}

// untilLogged waits until the log has a text: a handler has a goroutine of its own while the device is open.
func untilLogged(t *testing.T, log *journal, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, time.Minute, time.Millisecond, text)
}

// untilBegun waits until a process has its island to itself: its start may be answered
// before the island's thread came to it.
func untilBegun(t *testing.T, log *journal) {
	t.Helper()
	untilLogged(t, log, "begins")
}

// requireBlamed: an error has its kind and the program that is to blame.
func requireBlamed(t *testing.T, err, want error, program string, p bridge.Process, island int) {
	t.Helper()
	require.ErrorIs(t, err, want)
	var blamed *bridge.ComputingError
	require.ErrorAs(t, err, &blamed)
	require.Equal(t, program, blamed.Program)
	if p.ID != 0 {
		require.Equal(t, p.ID, blamed.Process)
	}
	require.Equal(t, island, blamed.Island)
	require.Positive(t, blamed.For)
	require.ErrorContains(t, err, fmt.Sprintf("program %q", program))
}

// untilFreed opens devices until what was left behind has ended and is freed. On a busy machine one of
// these may be left behind, too: its thread has no processor for a second.
func untilFreed(t *testing.T, images int) {
	t.Helper()
	for mapped(t) > images {
		if err := openDevice(t, "").Close(); err != nil {
			require.ErrorIs(t, err, bridge.ErrBusy)
		}
	}
}

// TestCloseBesideAProcessThatComputes: Close does not hide that a thread continues.
func TestCloseBesideAProcessThatComputes(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "")
	images := mapped(t)
	load(ctx, t, dev, build(t, "busy.c"))
	page := words(t)
	p := begin(ctx, t, dev, "quiet", 0, addressOf(page))
	untilBegun(t, log)
	err := dev.Close()
	requireBlamed(t, err, bridge.ErrBusy, "quiet", p, 0)
	require.Equal(t, err, dev.Close(), "it stays what it was")
	require.Contains(t, log.String(), `msg="device closed beside a process that computes"`)
	require.Contains(t, log.String(), "program=quiet")
	page[0] = 1
	untilFreed(t, images)
}

// TestFabricClosedBesideAProcessThatComputes: so with a process of another node.
func TestFabricClosedBesideAProcessThatComputes(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "?torus=2x1x1")
	far, err := dev.(bridge.FabricNode).Fabric().Device(ctx, abi.MakeNode(1, 0, 0))
	require.NoError(t, err)
	images := mapped(t)
	load(ctx, t, far, build(t, "busy.c"))
	page := words(t)
	p := begin(ctx, t, far, "quiet", 0, addressOf(page))
	untilBegun(t, log)
	err = dev.Close()
	requireBlamed(t, err, bridge.ErrBusy, "quiet", p, 0)
	require.Equal(t, err, dev.Close(), "it stays what it was")
	require.Contains(t, log.String(), `msg="device closed beside a process that computes"`)
	page[0] = 1
	untilFreed(t, images)
}

// TestDeviceWritesOnlyToItsLog: a program that logs on after Close does not write to
// what got its descriptor's number since.
func TestDeviceWritesOnlyToItsLog(t *testing.T) {
	ctx := within(t)
	images := mapped(t)
	dev, log := openLogged(t, "")
	load(ctx, t, dev, build(t, "busy.c"))
	page := words(t)
	begin(ctx, t, dev, "chatter", 0, addressOf(page))
	untilBegun(t, log)
	require.ErrorIs(t, dev.Close(), bridge.ErrBusy)
	var files []*os.File
	for i := range 64 {
		f, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprint(i)))
		require.NoError(t, err)
		defer f.Close()
		files = append(files, f)
	}
	for logged := page[1]; page[1] == logged; { // it logs on
		runtime.Gosched()
	}
	page[0] = 1
	untilFreed(t, images)
	for _, f := range files {
		st, err := f.Stat()
		require.NoError(t, err)
		require.Zero(t, st.Size(), "%s has device log lines", f.Name())
	}
}

// TestResetBesideAProcessThatComputes: Reset gives a working device and logs what
// continues beside it; once that has ended, Close has nothing to complain of.
func TestResetBesideAProcessThatComputes(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "")
	images := mapped(t)
	load(ctx, t, dev, build(t, "busy.c"))
	page := words(t)
	begin(ctx, t, dev, "quiet", 0, addressOf(page))
	untilBegun(t, log)
	require.NoError(t, dev.Reset(ctx))
	works(t, dev)
	untilLogged(t, log, `msg="device restarted beside a process that computes"`)
	untilLogged(t, log, "program=quiet")
	page[0] = 1
	untilFreed(t, images)
	require.NoError(t, dev.Close())
}

// TestSilentDeviceNamesTheProgram: calls that end because a program computes name it.
func TestSilentDeviceNamesTheProgram(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "")
	load(ctx, t, dev, build(t, "busy.c"))
	hold := begin(ctx, t, dev, "hold", 0, 0)
	ch, err := dev.Subscribe(ctx, hold.First)
	require.NoError(t, err)
	blocked := make(chan error, 1)
	go func() { blocked <- ch.Send(ctx, nil) }()
	page := words(t)
	p := begin(ctx, t, dev, "quiet", 0, addressOf(page))
	requireBlamed(t, <-blocked, bridge.ErrDeviceLost, "quiet", p, 0)
	_, err = dev.Programs(ctx)
	requireBlamed(t, err, bridge.ErrDeviceLost, "quiet", p, 0)
	require.NoError(t, dev.Reset(ctx))
	works(t, dev)
	untilLogged(t, log, `program \"quiet\"`)
	page[0] = 1
	for err = dev.Close(); err != nil; err = openDevice(t, "").Close() {
		require.ErrorIs(t, err, bridge.ErrBusy)
	}
}

// TestOneIslandComputes: the channels of the other island continue for longer than a
// silent device has, and so does control; what needs the island that computes says
// what it waits for; afterwards all is well.
func TestOneIslandComputes(t *testing.T) {
	for island, name := range []string{"that of control", "the other"} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			dev, _ := openLogged(t, "?islands=2&managers=2&channels=64")
			load(ctx, t, dev, build(t, "busy.c"))
			other := 1 - island
			targets := [2]bridge.Target{20, 40}
			p := begin(ctx, t, dev, "loopback", targets[other], 0)
			ch, err := dev.Subscribe(ctx, p.First)
			require.NoError(t, err)
			page := words(t)
			p = begin(ctx, t, dev, "quiet", targets[island], addressOf(page))
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
				require.NoError(t, ch.Send(ctx, []byte("on")))
				_, err := ch.Receive(ctx, make([]byte, 56))
				require.NoError(t, err)
			}
			_, err = dev.Health()
			require.NoError(t, err)
			if island == 1 {
				controlGoesOn(ctx, t, dev, p)
			}
			page[0] = 1
			if err = dev.Stop(ctx, p.ID); err != nil {
				require.ErrorIs(t, err, bridge.ErrInvalid, "it has returned")
			}
			works(t, dev)
			require.NoError(t, dev.Close())
		})
	}
}

// controlGoesOn: requests that need the island of p end, the others work.
func controlGoesOn(ctx context.Context, t *testing.T, dev bridge.Device, p bridge.Process) {
	t.Helper()
	requireBlamed(t, stopBriefly(ctx, t, dev, p.ID), context.DeadlineExceeded, "quiet", p, 1)
	_, err := dev.Start(ctx, bridge.Program{Name: "hold", First: p.First + 1, Targets: 1})
	requireBlamed(t, err, bridge.ErrTargetTimeout, "quiet", p, 1)
	hold, err := dev.Start(ctx, bridge.Program{Name: "hold", Targets: 1})
	require.NoError(t, err)
	require.NoError(t, dev.Stop(ctx, hold.ID))
	_, err = dev.Subscribe(ctx, abi.TargetTime)
	require.NoError(t, err)
}

// TestStopIsBounded: a process that does not stop ends Stop with its context, or
// without one with ErrTargetTimeout; the device continues, and Stop works later.
func TestStopIsBounded(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "")
	defer dev.Close()
	load(ctx, t, dev, build(t, "busy.c"))
	page := words(t)
	p := begin(ctx, t, dev, "deaf", 0, addressOf(page))
	err := stopBriefly(ctx, t, dev, p.ID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, bridge.ErrDeviceLost)
	require.ErrorIs(t, dev.Stop(context.Background(), p.ID), bridge.ErrTargetTimeout)
	works(t, dev)
	page[0] = 1
	if err = dev.Stop(ctx, p.ID); err != nil {
		require.ErrorIs(t, err, bridge.ErrInvalid, "it has returned")
	}
}

// TestStopIsRemembered: a process on an island that computes is asked once, by a Stop that
// ended meanwhile, and returns as soon as it can. Nobody asks again.
func TestStopIsRemembered(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "?islands=2&managers=2&channels=64")
	defer dev.Close()
	load(ctx, t, dev, build(t, "busy.c"))
	hold := begin(ctx, t, dev, "hold", 41, 0)
	page := words(t)
	p := begin(ctx, t, dev, "late", 40, addressOf(page))
	untilBegun(t, log)
	for _, id := range []bridge.ProcessID{p.ID, hold.ID} {
		require.ErrorIs(t, stopBriefly(ctx, t, dev, id), context.DeadlineExceeded)
	}
	page[0] = 1
	for _, id := range []bridge.ProcessID{p.ID, hold.ID} {
		require.Eventually(t, func() bool {
			runs, err := dev.Running(ctx, id)
			return assert.NoError(t, err) && !runs
		}, time.Minute, time.Millisecond)
		require.ErrorIs(t, dev.Stop(ctx, id), bridge.ErrInvalid)
	}
	p = begin(ctx, t, dev, "hold", 40, 0)
	require.NoError(t, dev.Stop(ctx, p.ID))
}

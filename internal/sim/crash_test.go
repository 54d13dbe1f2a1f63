//go:build cgo

package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// ways are those in which testdata/crash.c can crash, as it has them, what is said of
// each, and the comment on the line where it happens.
var ways = []struct{ what, comment string }{
	{"touched memory that cannot be reached, at 0x10", "WILD"},
	{"divided by zero, or to what has no room", "DIVIDE"},
	{"aborted", "STOP"},
	{"ran what is no instruction", "TRAP"},
	{"overran its stack of 65536 bytes", ""},
	{"overran its stack of 65536 bytes", ""},
	{"touched memory that cannot be reached, at 0x", "CHANNEL"},
	{"touched memory that cannot be reached, at 0x8", "BUFFER"},
	{"touched memory that cannot be reached, at 0x18", "LOG"},
	{"touched memory that cannot be reached, at 0x20", "LIBRARY"},
	{"touched memory that cannot be reached, at 0x10", "PROMPT"},
}

// corrupting is the way after those, which cannot be contained.
var corrupting = len(ways)

// lineOf returns the line of testdata/crash.c with a comment.
func lineOf(t *testing.T, comment string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/crash.c")
	require.NoError(t, err)
	before, _, found := bytes.Cut(text, []byte("/* "+comment+" */"))
	require.True(t, found, comment)
	return fmt.Sprintf("testdata/crash.c:%d", bytes.Count(before, []byte("\n"))+1)
}

// crashing starts the program and returns its channel.
func crashing(ctx context.Context, t *testing.T, dev bridge.Device) (bridge.Process, bridge.Channel) {
	t.Helper()
	p, err := dev.Start(ctx, bridge.Program{Name: "crash", Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	return p, ch
}

// order sends the way in which the program is to continue.
func order(ctx context.Context, t *testing.T, ch bridge.Channel, way int) {
	t.Helper()
	require.NoError(t, ch.Send(ctx, binary.LittleEndian.AppendUint64(nil, uint64(way))))
}

// TestCrashIsContained: a process that crashes ends, and nothing else. Its channels fail
// with an error that names it and the line; a process of the same image on the same
// island, the services, and the device continue, and the program can be started again.
func TestCrashIsContained(t *testing.T) {
	bridgetest.LeakCheck(t)
	ctx := within(t)
	dev, log := openLogged(t, "?islands=1&managers=1")
	load(ctx, t, dev, build(t, "crash.c", "_GNU_SOURCE"))
	_, beside := crashing(ctx, t, dev)
	buf := make([]byte, 56)
	for way, w := range ways {
		p, ch := crashing(ctx, t, dev)
		order(ctx, t, ch, way)
		var err error
		for err == nil { // one way begins with messages
			if _, err = ch.Receive(ctx, buf); err == nil {
				order(ctx, t, ch, 0)
			}
		}
		requireCrash(t, err, p, way)
		require.Error(t, ch.Send(ctx, nil), w.what)
		require.NoError(t, ch.Close())
		order(ctx, t, beside, 1000)
		_, err = beside.Receive(ctx, buf)
		require.NoError(t, err, w.what)
		works(t, dev)
	}
	require.NoError(t, dev.Reset(ctx))
	works(t, dev)
	require.NoError(t, dev.Close())
	require.Equal(t, len(ways), strings.Count(log.String(), `device program \"crash\"`), "%s", log)
}

func requireCrash(t *testing.T, err error, p bridge.Process, way int) {
	t.Helper()
	w := ways[way]
	require.ErrorIs(t, err, bridge.ErrClosed, "%d", way)
	var crash *bridge.CrashError
	require.ErrorAs(t, err, &crash, "%d", way)
	require.Equal(t, p.ID, crash.Process)
	require.Equal(t, "crash", crash.Program)
	require.Contains(t, crash.What, w.what)
	require.Contains(t, crash.Line, "testdata/crash.c:", w.what)
	if w.comment != "" {
		require.Equal(t, lineOf(t, w.comment), crash.Line, w.what)
	}
	require.Contains(t, err.Error(), crash.Line)
}

// TestCrashesAtOnce: processes of several islands crash at the same time, while others
// carry messages and transfers.
func TestCrashesAtOnce(t *testing.T) {
	bridgetest.LeakCheck(t)
	ctx := within(t)
	dev := openDevice(t, "islands=4&managers=4&engines=1")
	defer dev.Close()
	load(ctx, t, dev, build(t, "crash.c", "_GNU_SOURCE"))
	loopback, err := dev.Subscribe(ctx, abi.TargetLoopback)
	require.NoError(t, err)
	var all sync.WaitGroup
	for lane := range 4 {
		all.Go(func() {
			for i := range 25 {
				way := (lane + i) % len(ways)
				if ways[way].comment == "PROMPT" {
					continue
				}
				p, ch := crashing(ctx, t, dev)
				order(ctx, t, ch, way)
				_, err := ch.Receive(ctx, make([]byte, 56))
				requireCrash(t, err, p, way)
				require.NoError(t, ch.Close())
			}
		})
	}
	sent, got := bytes.Repeat([]byte{7}, 1<<20), make([]byte, 1<<20)
	for range 25 {
		require.NoError(t, loopback.SendInd(ctx, sent))
		require.NoError(t, loopback.ReceiveInd(ctx, got))
		require.Equal(t, sent, got)
		clear(got)
	}
	all.Wait()
}

// TestCrashOfAnotherIsNotBlamed: a subscription that began after a crash, on the same
// target, is not ended by that.
func TestCrashOfAnotherIsNotBlamed(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "")
	defer dev.Close()
	load(ctx, t, dev, build(t, "crash.c", "_GNU_SOURCE"))
	first, ch := crashing(ctx, t, dev)
	order(ctx, t, ch, 0)
	_, err := ch.Receive(ctx, make([]byte, 56))
	requireCrash(t, err, first, 0)
	require.NoError(t, ch.Close())
	p, ch := crashing(ctx, t, dev)
	require.Equal(t, first.First, p.First)
	require.NoError(t, dev.Stop(ctx, p.ID))
	_, err = ch.Receive(ctx, make([]byte, 56))
	require.ErrorIs(t, err, bridge.ErrClosed)
	var crash *bridge.CrashError
	require.NotErrorAs(t, err, &crash)
}

// TestCorruptedFirmware: what a program did to the firmware's own memory ends the
// process of the host, and its last line names the program.
func TestCorruptedFirmware(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run", "^TestCorruptingChild$")
	child.Env = append(os.Environ(), "NFC_CORRUPTING=1")
	out, err := child.CombinedOutput()
	require.Error(t, err, "it lives on: %s", out)
	require.Regexp(t, `nfcomms: device program "crash" \(process 7, island 0\) touched memory .*, in its image at 0x[0-9a-f]+\n`, string(out))
	require.Equal(t, 1, strings.Count(string(out), "nfcomms: device program"), "%s", out)
}

// TestCorruptingChild is the process of TestCorruptedFirmware that ends.
func TestCorruptingChild(t *testing.T) {
	if os.Getenv("NFC_CORRUPTING") == "" {
		return
	}
	ctx := within(t)
	dev := openDevice(t, "")
	load(ctx, t, dev, build(t, "crash.c", "_GNU_SOURCE"))
	_, ch := crashing(ctx, t, dev)
	order(ctx, t, ch, corrupting)
	_, _ = ch.Receive(ctx, make([]byte, 56))
}

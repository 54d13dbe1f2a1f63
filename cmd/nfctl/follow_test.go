package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// live is a command that runs beside the test.
type live struct {
	lines chan string // of the standard output
	stop  context.CancelFunc
	code  chan int
	mu    sync.Mutex
	errs  bytes.Buffer
}

func (l *live) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errs.Write(b)
}

func (l *live) stderr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errs.String()
}

// startLive runs a command line until stop or its end.
func startLive(t *testing.T, args ...string) *live {
	ctx, stop := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(stop)
	r, w := io.Pipe()
	l := &live{lines: make(chan string, 1000), stop: stop, code: make(chan int, 1)}
	go func() {
		l.code <- run(ctx, args, streams{strings.NewReader(""), w, l}, func(string) string { return "" })
		_ = w.Close()
	}()
	go func() {
		defer close(l.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			l.lines <- s.Text()
		}
	}()
	return l
}

// until reads lines up to one that contains text.
func (l *live) until(t *testing.T, text string) (seen []string) {
	t.Helper()
	for {
		select {
		case line, ok := <-l.lines:
			require.True(t, ok, "it ended without %q after %q; %s", text, seen, l.stderr())
			seen = append(seen, line)
			if strings.Contains(line, text) {
				return seen
			}
		case <-time.After(watchdog):
			t.Fatalf("no %q after %q; %s", text, seen, l.stderr())
		}
	}
}

// TestFollowSurvivesServer: events are shown as they happen, also from the server
// that starts next, and none twice.
func TestFollowSurvivesServer(t *testing.T) {
	h, address := startHost(t, hostOptions{devices: []string{"sim0=sim:"}})
	l := startLive(t, "events", "-f", "-o", "json", "--address", address)
	l.until(t, `"state is ready"`)
	require.Equal(t, exitOK, nfctl(t.Context(), t, "open", "sim0", "1", "--address", address).code)
	seen := l.until(t, `"channel_opened"`)
	for _, line := range seen {
		require.NoError(t, json.Unmarshal([]byte(line), new(eventRecord)))
	}

	require.NoError(t, h.stop())
	next, err := newHost(t.Context(), h.path, hostOptions{devices: []string{"sim1=sim:"}})
	require.NoError(t, err)
	*h = *next
	for _, line := range l.until(t, `"devices/sim1"`) {
		require.NotContains(t, line, `"channel_opened"`, "it came before")
	}
	l.stop()
	require.Equal(t, exitInterrupted, <-l.code)
	require.Contains(t, l.stderr(), "waiting for the server")
	require.Contains(t, l.stderr(), "the server started anew")
	require.True(t, strings.HasSuffix(l.stderr(), "nfctl: interrupted\n"), l.stderr())
}

// TestInterrupted: what was measured until then is printed.
func TestInterrupted(t *testing.T) {
	h, address := startHost(t, hostOptions{devices: []string{"sim0=sim:"}})
	l := startLive(t, "ping", "-n", "0", "-i", "1ms", "--address", address)
	for _, dev := range h.srv.Devices() {
		require.Eventually(t, func() bool { return dev.Stats().Direct.H2D.Messages >= 2 }, watchdog, time.Millisecond)
	}
	l.stop()
	l.until(t, "server to firmware and back")
	require.Equal(t, exitInterrupted, <-l.code)
	require.Equal(t, "nfctl: interrupted\n", l.stderr())

	l = startLive(t, "top", "--loop", "-i", "10ms", "-o", "json", "--address", address)
	l.until(t, `{"time":`)
	l.stop()
	require.Equal(t, exitInterrupted, <-l.code)
}

// TestBrokenPipe: a reader that closes its pipe ends the command without a message.
func TestBrokenPipe(t *testing.T) {
	_, address := startHost(t, hostOptions{devices: []string{"sim0=sim:"}})
	path, err := exec.LookPath("nfctl") // TestMain put it there
	require.NoError(t, err)
	for _, args := range [][]string{
		{"list"}, {"list", "-o", "json"}, {"info", "-o", "yaml"}, {"events", "-f"}, {"top", "--loop", "-i", "10ms"}, {"--help"},
	} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		cmd := exec.CommandContext(ctx, path, append(args, "--address", address)...)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = w, &errs
		err = cmd.Run()
		cancel()
		var exit *exec.ExitError
		require.True(t, errors.As(err, &exit), "%v: %v", args, err)
		require.Equal(t, exitPipe, exit.ExitCode(), "%v: %s", args, errs.String())
		require.Empty(t, errs.String(), args)
		require.NoError(t, w.Close())
	}
}

// fullDisk is a writer that fails for a reason with no exit code of its own.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatFails(t *testing.T) {
	var errs bytes.Buffer
	s := streams{strings.NewReader(""), fullDisk{}, &errs}
	code := run(t.Context(), []string{"version", "--client"}, s, func(string) string { return "" })
	require.Equal(t, exitFailed, code)
	require.Equal(t, "nfctl: no space left\n", errs.String())
}

// TestReceiveSeries: several messages are printed line by line.
func TestReceiveSeries(t *testing.T) {
	h, address := startHost(t, hostOptions{devices: []string{"sim0=sim:"}})
	l := startLive(t, "receive", "sim0", "1", "-n", "2", "-o", "json", "--address", address)
	for range 2 {
		require.Equal(t, exitOK, nfctl(t.Context(), t, "send", "sim0", "1", "x", "--address", address).code)
		l.until(t, `"hex":"78"`)
	}
	require.Equal(t, exitOK, <-l.code)
	for name, dev := range h.srv.Devices() {
		require.Equal(t, "sim0", name)
		require.IsType(t, &nfcomms.Device{}, dev)
		require.EqualValues(t, 2, dev.Stats().Direct.H2D.Messages)
	}
}

// TestListWatch: list -w shows a device, then each change of its state.
func TestListWatch(t *testing.T) {
	_, address := startHost(t, hostOptions{devices: []string{"sim0=sim:"}})
	l := startLive(t, "--address", address, "list", "-w", "-o", "json")
	state := func() string {
		var d struct{ Device, State string }
		require.NoError(t, json.Unmarshal([]byte(<-l.lines), &d))
		require.Equal(t, "sim0", d.Device)
		return d.State
	}
	require.Equal(t, "ready", state())
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--address", address, "drain", "sim0"}, streams{nil, &out, &errs}, func(string) string { return "" }), errs.String())
	for got := state(); got != "drained"; got = state() {
		require.Equal(t, "draining", got)
	}
	l.stop()
	require.Equal(t, exitInterrupted, <-l.code)
}

// TestListWatchSurvivesServer: list -w shows the devices of the server that starts next, and says which
// are not there any more. A device that is as it was is not shown again.
func TestListWatchSurvivesServer(t *testing.T) {
	h, address := startHost(t, hostOptions{devices: []string{"sim0=sim:", "sim1=sim:"}})
	l := startLive(t, "--address", address, "list", "-w", "-o", "json")
	l.until(t, `"sim0"`)
	l.until(t, `"sim1"`)
	require.NoError(t, h.stop())
	next, err := newHost(t.Context(), h.path, hostOptions{devices: []string{"sim1=sim:", "sim2=sim:"}})
	require.NoError(t, err)
	*h = *next
	l.until(t, `"sim2"`)
	removed := l.until(t, `"removed"`)
	require.Contains(t, removed[len(removed)-1], `"sim0"`)
	require.Equal(t, exitOK, nfctl(t.Context(), t, "drain", "sim1", "--address", address).code)
	l.until(t, `"drained"`)
	l.stop()
	require.Equal(t, exitInterrupted, <-l.code)
	require.Contains(t, l.stderr(), "waiting for the server")
}

// TestListWatchSameState: of a snapshot that follows a lost stream what differs is shown.
func TestListWatchSameState(t *testing.T) {
	var out bytes.Buffer
	a := &app{streams: streams{nil, &out, io.Discard}, output: "json", noColor: true}
	a.buffered = bufio.NewWriter(&out)
	w := deviceWatch{app: a, out: a.series(), shown: map[string]*nfcommsv1.Device{}}
	for _, c := range []struct {
		epoch uint32
		shows bool
	}{{1, true}, {1, false}, {2, true}, {2, false}} {
		out.Reset()
		require.NoError(t, w.take(&nfcommsv1.WatchDevicesResponse{
			Change: nfcommsv1.Change_CHANGE_SNAPSHOT, Device: &nfcommsv1.Device{Name: "devices/sim0", Epoch: c.epoch},
		}))
		require.Equal(t, c.shows, out.Len() > 0)
	}
	out.Reset()
	require.NoError(t, w.take(&nfcommsv1.WatchDevicesResponse{
		Change: nfcommsv1.Change_CHANGE_DELETED, Device: &nfcommsv1.Device{Name: "devices/sim0", State: nfcommsv1.Device_STATE_READY},
	}))
	require.Contains(t, out.String(), `"removed"`)
	require.Empty(t, w.shown)
}

// TestDistance counts the letters between two names.
func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"sim0", "sim0"}: 0, {"sim1", "sim0"}: 1, {"sm0", "sim0"}: 1, {"simm0", "sim0"}: 1, {"ism0", "sim0"}: 2, {"", "abc"}: 3, {"abc", ""}: 3,
	} {
		require.Equal(t, want, distance(pair[0], pair[1]), "%v", pair)
	}
}

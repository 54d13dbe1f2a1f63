package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// moment is a made-up sample: two devices with n messages, the first with two
// channels, at second n.
func moment(n uint64) sample {
	stats := func(messages, bytes, errors uint64) *nfcommsv1.ChannelStats {
		return &nfcommsv1.ChannelStats{
			DirectH2D:   &nfcommsv1.PathStats{Messages: messages, Bytes: bytes, Errors: errors},
			IndirectD2H: &nfcommsv1.PathStats{Messages: 1, Bytes: 10 * bytes},
			WaitingH2D:  2, TransfersD2H: 3,
		}
	}
	device := func(name string, n uint64) *nfcommsv1.Device {
		return &nfcommsv1.Device{Name: "devices/" + name, State: nfcommsv1.Device_STATE_READY, Stats: &nfcommsv1.DeviceStats{Channels: stats(n, 56*n, 0)}}
	}
	channel := func(target uint32, messages, bytes, errors uint64) *nfcommsv1.Channel {
		return &nfcommsv1.Channel{Name: fmt.Sprintf("devices/nic0/channels/%d", target), Target: target, Stats: stats(messages, bytes, errors)}
	}
	health := map[string]*nfcommsv1.GetDiagnosticsResponse{
		"devices/nic0": {Heartbeat: &nfcommsv1.Heartbeat{Beat: 7}, HeartbeatAge: durationpb.New(time.Millisecond),
			Diagnostic: &nfcommsv1.DiagnosticWord{Valid: true, Worst: nfcommsv1.Level_LEVEL_SICK, Readings: []*nfcommsv1.Reading{
				{Part: nfcommsv1.Part_PART_VOLTAGE, Level: nfcommsv1.Level_LEVEL_SICK}}},
			Memories: []*nfcommsv1.Memory{{Type: nfcommsv1.Memory_TYPE_CTM, SizeBytes: 1 << 18}}},
		"devices/nic1": {Failure: &nfcommsv1.Failure{Reason: "DEVICE_LOST", Message: "no heartbeat"}},
	}
	return sample{
		at: time.Unix(int64(n), 0), health: health,
		devices:  []*nfcommsv1.Device{device("nic0", n), device("nic1", 2*n)},
		channels: []*nfcommsv1.Channel{channel(1, n, 0, 9*n), channel(20, 2*n, 100*n, 0), channel(30, 7*n, 50*n, n)},
	}
}

func TestCompare(t *testing.T) {
	r := compare(moment(10), moment(14), 2)
	require.Equal(t, 4.0, r.Interval)
	require.Equal(t, rateRecord{1, 56, 0}, r.Devices[0].DirectH2D)
	require.Equal(t, rateRecord{0, 560, 0}, r.Devices[0].IndirectD2H)
	require.Equal(t, rateRecord{2, 112, 0}, r.Devices[1].DirectH2D)
	require.EqualValues(t, 2, r.Devices[0].waiting())
	require.EqualValues(t, 3, r.Channels[0].transfers())
	require.Equal(t, []uint32{20, 30}, []uint32{r.Channels[0].Target, r.Channels[1].Target}, "most bytes first")
	require.Equal(t, 3, r.Total)

	first := compare(sample{}, moment(10), 9)
	require.Zero(t, first.Interval)
	require.Zero(t, first.Devices[0].all(), "no rate without an earlier sample")

	before := moment(10)
	before.devices, before.channels = before.devices[:1], nil
	r = compare(before, moment(14), 9)
	require.Zero(t, r.Devices[1].all(), "nic1 was not there before")
	require.Zero(t, r.Channels[0].all())
	r = compare(moment(14), moment(20), 9)
	reset := compare(moment(14), sample{at: time.Unix(16, 0), devices: moment(6).devices, health: moment(6).health}, 9)
	require.Equal(t, 3.0, reset.Devices[0].DirectH2D.Messages, "a counter that went back began at zero")
	require.NotEqual(t, r.Devices[0].all(), reset.Devices[0].all())
}

// screen drives the model of top without a terminal.
type screen struct {
	t *testing.T
	m tea.Model
}

func newScreen(t *testing.T, o topOptions) *screen {
	m := topModel{ctx: t.Context(), opt: o, title: "unix:/s", fetch: func(context.Context) (sample, error) { return moment(30), nil }}
	m = m.add(moment(10)).add(moment(12))
	return &screen{t, m}
}

// key presses one key and returns what it makes happen.
func (s *screen) key(k tea.Key) tea.Cmd {
	m, cmd := s.m.Update(tea.KeyPressMsg(k))
	s.m = m
	return cmd
}

// typed presses a letter.
func (s *screen) typed(r rune) tea.Cmd { return s.key(tea.Key{Code: r, Text: string(r)}) }

func (s *screen) text() string { return s.m.View().Content }

// line returns the first line with a text.
func (s *screen) line(text string) string {
	s.t.Helper()
	for l := range strings.Lines(s.text()) {
		if strings.Contains(l, text) {
			return l
		}
	}
	s.t.Fatalf("no %q in\n%s", text, s.text())
	return ""
}

func TestScreenKeys(t *testing.T) {
	s := newScreen(t, topOptions{interval: time.Second, channels: 2})
	require.True(t, s.m.View().AltScreen)
	require.Contains(t, s.line("nic0  "), "> ")
	require.NotContains(t, s.line("nic1  "), "> ")
	require.Contains(t, s.line("20"), "1000 B")
	require.NotRegexp(t, `nic0 +1 `, s.text(), "--channels 2 leaves the slowest out")

	s.key(tea.Key{Code: tea.KeyDown})
	s.typed('j')
	require.Contains(t, s.line("nic1  "), "> ", "the last stays the last")
	s.key(tea.Key{Code: tea.KeyEnter})
	require.Contains(t, s.text(), "no heartbeat")
	s.key(tea.Key{Code: tea.KeyEscape})
	s.typed('k')
	s.key(tea.Key{Code: tea.KeyUp})
	s.key(tea.Key{Code: tea.KeyEnter})
	for _, want := range []string{"voltage sick", "ctm", "256 KiB", "1 ms ago"} {
		require.Contains(t, s.text(), want)
	}
	require.NotContains(t, s.text(), "nic1")
	s.typed('h')
	require.Contains(t, s.text(), "sort channels")
	s.typed('?')
	require.Contains(t, s.text(), "nic1")

	require.NotNil(t, s.typed('q'))
	require.IsType(t, tea.QuitMsg{}, s.typed('q')())
	require.IsType(t, tea.QuitMsg{}, s.key(tea.Key{Code: 'c', Mod: tea.ModCtrl})())
}

func TestScreenOrder(t *testing.T) {
	s := newScreen(t, topOptions{interval: time.Second, channels: 1})
	for _, first := range []string{"20", "30", " 1", " 1", "20"} { // bytes, messages, errors, target, bytes
		last := strings.Split(s.text(), "\n")
		require.Regexp(t, `^nic0 +`+strings.TrimSpace(first)+` `, last[len(last)-1], s.line("channels by"))
		s.typed('s')
	}
}

func TestScreenSamples(t *testing.T) {
	s := newScreen(t, topOptions{interval: time.Millisecond, channels: 9})
	require.IsType(t, due{}, s.m.Init()())
	next := func(msg tea.Msg) tea.Cmd {
		m, cmd := s.m.Update(msg)
		s.m = m
		return cmd
	}
	got := next(due{})()
	require.Equal(t, 30.0-12, compare(moment(12), got.(sampled).sample, 9).Interval)
	require.IsType(t, due{}, next(got)())
	require.Equal(t, 18.0, s.m.(topModel).record.Interval)

	next(sampled{err: errors.New("server not reachable")})
	require.Contains(t, s.text(), "server not reachable")
	require.Contains(t, s.text(), "nic0", "the last sample stays")
	require.Contains(t, s.line("nic0 "), "(stale)")
	next(sampled{sample: moment(40)})
	require.NotContains(t, s.text(), "stale")
	require.NotContains(t, s.text(), "not reachable")

	s.typed('p')
	require.Contains(t, s.text(), "paused")
	require.IsType(t, due{}, next(due{})(), "nothing is asked while paused")
	s.key(tea.Key{Code: tea.KeySpace, Text: " "})
	require.IsType(t, sampled{}, next(due{})())

	s.key(tea.Key{Code: tea.KeyDown})
	one := moment(50)
	one.devices = one.devices[:1]
	next(sampled{sample: one})
	require.Contains(t, s.line("nic0  "), "> ", "the cursor stays on a device that is there")
	next(sampled{sample: sample{at: time.Unix(60, 0)}})
	s.key(tea.Key{Code: tea.KeyDown})
	s.key(tea.Key{Code: tea.KeyEnter})
	require.Contains(t, s.text(), "DEVICE", "no device is no crash")
}

func TestScreenFits(t *testing.T) {
	s := newScreen(t, topOptions{interval: time.Second, channels: 9})
	s.m, _ = s.m.Update(tea.WindowSizeMsg{Width: 30, Height: 4})
	lines := strings.Split(s.text(), "\n")
	require.Len(t, lines, 4)
	for _, l := range lines {
		require.LessOrEqual(t, len(l), 30)
	}
}

// TestScreenAt80Columns: rates and errors fit, and long pages scroll with the cursor and by keys.
func TestScreenAt80Columns(t *testing.T) {
	s := newScreen(t, topOptions{interval: time.Second, channels: 50})
	many := moment(14)
	for n := range 30 {
		many.devices = append(many.devices, &nfcommsv1.Device{Name: fmt.Sprintf("devices/card%d", n), State: nfcommsv1.Device_STATE_READY})
	}
	s.m, _ = s.m.Update(sampled{sample: many})
	s.m, _ = s.m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	lines := strings.Split(s.text(), "\n")
	require.Len(t, lines, 24)
	for _, want := range []string{"DEVICE", "STATE", "H2D MSG/S", "H2D B/S", "D2H MSG/S", "D2H B/S", "ERR/S"} {
		require.Contains(t, lines[2], want)
	}
	for range 31 {
		s.key(tea.Key{Code: tea.KeyDown})
	}
	require.Contains(t, s.line("card29"), "> ")
	require.Contains(t, s.line("nfctl top"), "every 1s", "the first lines stay")
	for range 9 {
		s.key(tea.Key{Code: tea.KeyPgDown})
	}
	require.Regexp(t, `nic0 +\d+ .* \d+\s*$`, s.text(), "the last channel")
	s.key(tea.Key{Code: tea.KeyPgUp})
	require.NotContains(t, s.text(), "TARGET", "one page back, not nine")
	for range 9 {
		s.key(tea.Key{Code: tea.KeyPgUp})
	}
	require.Contains(t, s.text(), "DEVICE")
	require.Contains(t, s.text(), "nic0")
}

// TestTopLoopGoesOn: --loop reports a server that is away, and shows it again once it is back.
func TestTopLoopGoesOn(t *testing.T) {
	var out, failed bytes.Buffer
	a := &app{streams: streams{nil, &out, &failed}, server: server{address: "host:1"}, getenv: func(string) string { return "" }}
	samples := []any{moment(10), status.Error(codes.Unavailable, "gone"), context.DeadlineExceeded, moment(2), moment(6)}
	fetch := func(context.Context) (s sample, err error) {
		next := samples[0]
		samples = samples[1:]
		if err, bad := next.(error); bad {
			return s, err
		}
		return next.(sample), nil
	}
	var rates []float64
	show := func(r record) error {
		rates = append(rates, r.(topRecord).Devices[0].DirectH2D.Messages)
		return nil
	}
	require.NoError(t, a.topLoop(t.Context(), fetch, topOptions{loop: true, count: 4, interval: time.Millisecond}, show))
	require.Equal(t, []float64{0, 1}, rates)
	require.Equal(t, 2, strings.Count(failed.String(), "\n"), "%s", &failed)
}

// TestScreenProgram runs the screen as a terminal would, against a real server.
func TestScreenProgram(t *testing.T) {
	_, address := startHost(t, hostOptions{devices: []string{"sim0=sim:"}})
	c, err := control.Dial(address)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	keys, typing := io.Pipe()
	var out bytes.Buffer
	samples := make(chan struct{}, 100)
	a := &app{streams: streams{keys, &out, io.Discard}, server: server{address: address}, getenv: func(string) string { return "" }}
	done := make(chan error, 1)
	go func() {
		done <- a.topScreen(ctx, func(ctx context.Context) (sample, error) {
			s, err := takeSample(ctx, c, control.AllDevices)
			samples <- struct{}{}
			return s, err
		}, topOptions{interval: 10 * time.Millisecond, channels: 9}, tea.WithWindowSize(100, 20), tea.WithColorProfile(colorprofile.NoTTY))
	}()
	for range 3 {
		<-samples
	}
	_, err = typing.Write([]byte("q"))
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.NoError(t, typing.Close())
	require.Contains(t, out.String(), "nfctl top")
}

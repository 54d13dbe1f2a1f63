package metrics

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// openSim opens a device with a loopback that has echoed n messages and n
// transfers of 5,000 bytes.
func openSim(t testing.TB, n int) *nfcomms.Device {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err)
	buf, data := make([]byte, 56), make([]byte, 5000)
	for range n {
		require.NoError(t, ch.Send(ctx, buf))
		_, err = ch.Receive(ctx, buf)
		require.NoError(t, err)
		require.NoError(t, ch.SendInd(ctx, data, len(data)))
		_, err = ch.ReceiveInd(ctx, data, len(data))
		require.NoError(t, err)
	}
	return dev
}

// TestLint: names, units and help follow the conventions, for a device that
// runs and for one that does not open.
func TestLint(t *testing.T) {
	c := NewCollector(list(map[string]*nfcomms.Device{"sim0": openSim(t, 200), "gone": nil}), Options{Channels: true})
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestCollect: what a device did is what a scrape says.
func TestCollect(t *testing.T) {
	dev := openSim(t, 200)
	c := NewCollector(One("sim0", dev), Options{})
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP nfcomms_messages_total Messages (path direct) and transfers (path indirect) that were delivered.
# TYPE nfcomms_messages_total counter
nfcomms_messages_total{device="sim0",direction="d2h",path="direct"} 200
nfcomms_messages_total{device="sim0",direction="d2h",path="indirect"} 200
nfcomms_messages_total{device="sim0",direction="h2d",path="direct"} 200
nfcomms_messages_total{device="sim0",direction="h2d",path="indirect"} 200
# HELP nfcomms_payload_bytes_total Bytes that were delivered.
# TYPE nfcomms_payload_bytes_total counter
nfcomms_payload_bytes_total{device="sim0",direction="d2h",path="direct"} 11200
nfcomms_payload_bytes_total{device="sim0",direction="d2h",path="indirect"} 1e+06
nfcomms_payload_bytes_total{device="sim0",direction="h2d",path="direct"} 11200
nfcomms_payload_bytes_total{device="sim0",direction="h2d",path="indirect"} 1e+06
# HELP nfcomms_device_state 1 for the state the device is in, 0 for the others.
# TYPE nfcomms_device_state gauge
nfcomms_device_state{device="sim0",state="degraded"} 0
nfcomms_device_state{device="sim0",state="failed"} 0
nfcomms_device_state{device="sim0",state="ready"} 1
# HELP nfcomms_blocked_calls Calls that wait: asleep, for room in a ring, or for their turn behind another call.
# TYPE nfcomms_blocked_calls gauge
nfcomms_blocked_calls{device="sim0",direction="d2h"} 0
nfcomms_blocked_calls{device="sim0",direction="h2d"} 0
`), "nfcomms_messages_total", "nfcomms_payload_bytes_total", "nfcomms_device_state", "nfcomms_blocked_calls"))
	all := scrapeOnce(t, c)
	for _, direction := range directions {
		transfers := find(t, all, "nfcomms_transfer_duration_seconds", "direction", direction).Histogram
		require.EqualValues(t, 200, transfers.GetSampleCount())
		messages := find(t, all, "nfcomms_message_duration_seconds", "direction", direction).Histogram
		require.InDelta(t, 200, messages.GetSampleCount(), 64, "a measured message stands for those that were not")
		last := messages.Bucket[len(messages.Bucket)-1].GetCumulativeCount()
		require.LessOrEqual(t, last, messages.GetSampleCount())
		require.InDelta(t, 200*56, find(t, all, "nfcomms_message_size_bytes", "direction", direction).Histogram.GetSampleSum(), 64*56)
		sizes := find(t, all, "nfcomms_transfer_size_bytes", "direction", direction).Histogram
		require.EqualValues(t, 0, sizes.Bucket[0].GetCumulativeCount())
		require.EqualValues(t, 200, sizes.Bucket[1].GetCumulativeCount())
	}
	require.EqualValues(t, 1.0/64, value(t, all, "nfcomms_measured_messages_ratio"))
	require.EqualValues(t, 1, value(t, all, "nfcomms_device_info", "driver", "sim", "kind", "simulated", "address", "sim:"))
	require.InDelta(t, float64(time.Now().Unix()), value(t, all, "nfcomms_device_heartbeat_timestamp_seconds"), 60)
	for _, code := range codeNames {
		find(t, all, "nfcomms_errors_total", "code", code, "path", "direct", "direction", "h2d")
	}
	for _, p := range parts {
		require.Zero(t, value(t, all, "nfcomms_device_diagnostic_level", "part", p.name))
	}
}

// TestErrorCodes: an error is counted under the reason that the control plane
// gives it.
func TestErrorCodes(t *testing.T) {
	f, dev := newFake(t)
	for s := range abi.StatusCount {
		f.stats.Profile.Direct.H2D.Errors[s] = 100 + uint64(s)
	}
	all := scrapeOnce(t, NewCollector(One("dev0", dev), Options{}))
	for s := range abi.StatusCount {
		name := "other"
		if s != abi.OK {
			name = code(fmt.Errorf("wrapped: %w", bridge.Error(s)))
			c, _ := bridge.CodeOf(s)
			require.Equal(t, strings.ToLower(c.Reason), name)
		}
		require.EqualValues(t, 100+s, value(t, all, "nfcomms_errors_total", "code", name, "path", "direct", "direction", "h2d"))
	}
}

// TestStates: each way in which a device is not well has a state of its own.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		name         string
		prepare      func(*fake)
		state, cause string
	}{
		{"ready", func(*fake) {}, "ready", ""},
		{"no word", func(f *fake) { f.health.Diagnostic = 0 }, "ready", ""},
		{"sick", func(f *fake) { f.health.Diagnostic |= 1 << abi.DiagTemperature }, "degraded", ""},
		{"broken", func(f *fake) { f.health.Diagnostic |= 2 << abi.DiagVoltage }, "degraded", ""},
		{"fault", func(f *fake) { f.err = bridge.ErrFault }, "failed", "fault"},
		{"lost", func(f *fake) { f.err = bridge.ErrDeviceLost }, "failed", "device_lost"},
		{"closed", func(f *fake) { f.err = bridge.ErrClosed }, "failed", "closed"},
		{"strange", func(f *fake) { f.err = errors.New("?") }, "failed", "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, dev := newFake(t)
			c.prepare(f)
			all := scrapeOnce(t, NewCollector(One("dev0", dev), Options{}))
			for _, state := range stateNames {
				want := 0.0
				if state == c.state {
					want = 1
				}
				require.Equal(t, want, value(t, all, "nfcomms_device_state", "state", state), state)
			}
			if c.cause == "" {
				require.NotContains(t, all, "nfcomms_device_failure")
				require.Contains(t, all, "nfcomms_device_diagnostic_level")
			} else {
				require.EqualValues(t, 1, value(t, all, "nfcomms_device_failure", "code", c.cause))
				require.NotContains(t, all, "nfcomms_device_diagnostic_level", "nobody knows")
			}
			require.Contains(t, all, "nfcomms_device_heartbeat_timestamp_seconds")
		})
	}
	all := scrapeOnce(t, NewCollector(One("dev0", nil), Options{}))
	require.EqualValues(t, 1, value(t, all, "nfcomms_device_state", "state", "failed"))
	require.EqualValues(t, 1, value(t, all, "nfcomms_device_failure", "code", "not_open"))
	require.Len(t, all, 2)
}

// TestDurations: the classic and the native buckets of one histogram hold the
// same calls, and no more native buckets than allowed.
func TestDurations(t *testing.T) {
	f, dev := newFake(t)
	p := &f.stats.Profile.Indirect.H2D
	// Bucket 79 ends at 2^-14 s, and 80 begins there.
	p.Time, p.Durations = 3*time.Second, [bridge.DurationBuckets]uint64{10: 5, 79: 3, 80: 4, 200: 2}
	c := NewCollector(One("dev0", dev), Options{})
	h := find(t, scrapeOnce(t, c), "nfcomms_transfer_duration_seconds", "direction", "h2d").Histogram
	require.EqualValues(t, 14, h.GetSampleCount())
	require.Equal(t, 3.0, h.GetSampleSum())
	require.Len(t, h.Bucket, 21)
	for n, b := range h.Bucket {
		require.Equal(t, math.Exp2(float64(n-20)), b.GetUpperBound())
	}
	require.EqualValues(t, 5, h.Bucket[5].GetCumulativeCount())
	require.EqualValues(t, 8, h.Bucket[6].GetCumulativeCount())
	require.EqualValues(t, 12, h.Bucket[7].GetCumulativeCount())
	require.EqualValues(t, 12, h.Bucket[20].GetCumulativeCount())
	require.EqualValues(t, 3, h.GetSchema())
	require.Len(t, h.PositiveSpan, 3)
	require.EqualValues(t, 10+1+8*bridge.DurationFirst, h.PositiveSpan[0].GetOffset())
	require.Nil(t, h.CreatedTimestamp)
	for i := range p.Durations {
		p.Durations[i] = 1
	}
	h = find(t, scrapeOnce(t, c), "nfcomms_transfer_duration_seconds", "direction", "h2d").Histogram
	require.EqualValues(t, bridge.DurationBuckets, h.GetSampleCount())
	require.EqualValues(t, 2, h.GetSchema())
	used, at := uint32(0), int64(0)
	for _, s := range h.PositiveSpan {
		used += s.GetLength()
	}
	for _, delta := range h.PositiveDelta {
		at += delta
		require.LessOrEqual(t, at, int64(2))
	}
	require.LessOrEqual(t, used, uint32(nativeBuckets))
}

// manyNames yields names without end, each of them hostile in its way, with
// one device or none.
func manyNames(n int, dev *nfcomms.Device) func() iter.Seq2[string, *nfcomms.Device] {
	return func() iter.Seq2[string, *nfcomms.Device] {
		return func(yield func(string, *nfcomms.Device) bool) {
			for i := range n {
				d := dev
				if i%3 == 0 {
					d = nil
				}
				if !yield(fmt.Sprintf("%x\n\"}\xff%s", uint32(i*0x9E3779B1), strings.Repeat("n", i%300)), d) {
					return
				}
			}
		}
	}
}

// TestBounded: whatever the devices are called and however many there are, the
// series stay within the bound, and none is exported twice.
func TestBounded(t *testing.T) {
	f, dev := newFake(t)
	f.stats.Faults = 1
	f.health.Diagnostic |= 2 << abi.DiagMemory
	f.stats.Mailboxes = make([]bridge.MailboxStats, 64)
	for i := range f.stats.Mailboxes {
		f.stats.Mailboxes[i].Slots = 16
	}
	for i := range 3000 {
		_, err := dev.Subscribe(t.Context(), nfcomms.Target(i))
		require.NoError(t, err)
	}
	for _, c := range []struct{ names, max int }{{1, 0}, {3, 0}, {10, 0}, {300, 0}, {300, 400}, {300, 100_000}} {
		all := scrapeOnce(t, NewCollector(manyNames(c.names, dev), Options{Channels: true, MaxSeries: c.max}))
		if c.max == 0 {
			c.max = defaultMaxSeries
		}
		require.LessOrEqual(t, series(all), c.max, "%d names", c.names)
		require.NotEmpty(t, all)
	}
	all := scrapeOnce(t, NewCollector(manyNames(300, dev), Options{}))
	open := 0.0
	for _, m := range all["nfcomms_faults_total"].Metric {
		open += m.GetCounter().GetValue()
	}
	require.EqualValues(t, 200, open, "every device is somewhere")
	require.EqualValues(t, 2, value(t, all, "nfcomms_device_diagnostic_level", "device", overflow, "part", "memory"))
	require.Greater(t, value(t, all, "nfcomms_device_failure", "device", overflow, "code", "not_open"), 90.0)
}

// TestManyNames: so too for a hundred thousand names, which the sum alone takes
// in.
func TestManyNames(t *testing.T) {
	const n = 100_000
	all := scrapeOnce(t, NewCollector(manyNames(n, nil), Options{}))
	require.LessOrEqual(t, series(all), defaultMaxSeries)
	failed := 0.0
	for _, m := range all["nfcomms_device_failure"].Metric {
		failed += m.GetGauge().GetValue()
	}
	require.EqualValues(t, n, failed)
}

// TestOverflowSeries: a sum never shows more than was set aside for it, and a
// bound that is too small for anything shows that sum.
func TestOverflowSeries(t *testing.T) {
	_, dev := newFake(t)
	all := scrapeOnce(t, NewCollector(manyNames(10, dev), Options{MaxSeries: 1}))
	require.LessOrEqual(t, series(all), overflowSeries(false))
	require.NotEmpty(t, all)
	for name, f := range all {
		for _, m := range f.Metric {
			require.True(t, has(m, "device", overflow), "%s{%v}", name, m.Label)
		}
	}
}

// TestReservedNames: a device cannot pass for the sum, nor for another device.
func TestReservedNames(t *testing.T) {
	_, dev := newFake(t)
	long := strings.Repeat("x", 128)
	all := scrapeOnce(t, NewCollector(list(map[string]*nfcomms.Device{
		overflow: dev, long + "1": dev, long + "2": dev, "ok": dev,
	}), Options{}))
	require.EqualValues(t, 2, value(t, all, "nfcomms_device_state", "device", overflow, "state", "ready"))
	require.EqualValues(t, 1, value(t, all, "nfcomms_device_state", "device", long, "state", "ready"))
	require.EqualValues(t, 1, value(t, all, "nfcomms_device_state", "device", "ok", "state", "ready"))
}

// TestDocumented: docs/metrics.md has a row for every metric, with its type
// and its labels, and none for others.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(nfcomms_\\w+)` \\| ([a-z]+) \\| +([^|]*?) *\\|").FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[2] + " | " + m[3]
	}
	name := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)
	kinds := map[prometheus.ValueType]string{counter: "counter", gauge: "gauge", shape: "histogram"}
	for _, f := range families {
		m := name.FindStringSubmatch(f.desc.String())
		require.NotNil(t, m, f.desc.String())
		labels := strings.TrimPrefix(strings.TrimPrefix(m[2], "device"), ",")
		require.Equal(t, kinds[f.kind]+" | "+strings.ReplaceAll(labels, ",", ", "), rows[m[1]], m[1])
		delete(rows, m[1])
	}
	require.Empty(t, rows, "documented, but not there")
}

// TestBoardInfo: a card has its place and its serial number, so that an alert finds it in a machine.
func TestBoardInfo(t *testing.T) {
	f, dev := newFake(t)
	require.NotContains(t, scrapeOnce(t, NewCollector(One("dev0", dev), Options{})), "nfcomms_board_info")
	f.board = &bridge.Board{Address: "0000:03:00.0", Serial: "00-1b"}
	all := scrapeOnce(t, NewCollector(One("dev0", dev), Options{}))
	require.EqualValues(t, 1, value(t, all, "nfcomms_board_info", "pci_address", "0000:03:00.0", "serial", "00-1b"))
}

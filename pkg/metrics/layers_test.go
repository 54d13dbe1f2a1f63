package metrics

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

const layerTime = "nfcomms_layer_duration_seconds"

// exchange sends messages and transfers to the loopback and back.
func exchange(t *testing.T, ch *nfcomms.Channel, rounds int) {
	t.Helper()
	ctx, buf, data := context.Background(), make([]byte, 56), make([]byte, 5000)
	for range rounds {
		require.NoError(t, ch.Send(ctx, buf))
		_, err := ch.Receive(ctx, buf)
		require.NoError(t, err)
		require.NoError(t, ch.SendInd(ctx, data, len(data)))
		_, err = ch.ReceiveInd(ctx, data, len(data))
		require.NoError(t, err)
	}
}

// loopback opens a device with its loopback channel.
func loopback(t *testing.T) (*nfcomms.Device, *nfcomms.Channel) {
	t.Helper()
	dev := openSim(t, 0)
	require.Len(t, admin.Channels(dev), 1)
	return dev, admin.Channels(dev)[0]
}

// TestLayers: from the first scrape on calls are counted in each layer, no count falls, and the
// layers are absent where nobody asked for them.
func TestLayers(t *testing.T) {
	dev, ch := loopback(t)
	require.NotContains(t, scrapeOnce(t, NewCollector(One("dev0", dev), Options{})), layerTime)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(One("dev0", dev), Options{Trace: 1}))
	exchange(t, ch, 1)
	all := gather(t, reg)
	require.NotContains(t, all, layerTime, "nothing was traced before the first scrape")
	require.Zero(t, value(t, all, "nfcomms_trace_lost_calls_total"))
	require.Positive(t, value(t, all, "nfcomms_trace_clock_error_seconds"))
	for scrapes := 1; scrapes <= 3; scrapes++ {
		exchange(t, ch, 10)
		all = gather(t, reg)
		for _, direction := range directions {
			for _, path := range paths {
				m := find(t, all, layerTime, "direction", direction, "path", path, "layer", "return").Histogram
				require.EqualValues(t, 10*scrapes, m.GetSampleCount())
				require.Positive(t, m.GetSampleSum())
			}
		}
	}
	for _, m := range all[layerTime].Metric {
		require.EqualValues(t, 30, m.Histogram.GetSampleCount(), "%v", m.Label)
	}
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestLayersCountWhatIsLost: of more calls than have room between two scrapes a choice is kept.
func TestLayersCountWhatIsLost(t *testing.T) {
	dev, ch := loopback(t)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(One("dev0", dev), Options{Trace: 1}))
	gather(t, reg)
	exchange(t, ch, 300)
	all := gather(t, reg)
	kept := uint64(0)
	for _, direction := range directions {
		for _, path := range paths {
			kept += find(t, all, layerTime, "direction", direction, "path", path, "layer", "return").Histogram.GetSampleCount()
		}
	}
	require.EqualValues(t, 1200, float64(kept)+value(t, all, "nfcomms_trace_lost_calls_total"))
}

// TestLayersAreBounded: with every layer of several devices the series stay within their bound, and
// what does not fit is added up.
func TestLayersAreBounded(t *testing.T) {
	devices := map[string]*nfcomms.Device{}
	for i := range 4 {
		dev, _ := loopback(t)
		devices[fmt.Sprint("dev", i)] = dev
	}
	c := NewCollector(list(devices), Options{Trace: 1})
	scrapeOnce(t, c)
	for _, dev := range devices {
		exchange(t, admin.Channels(dev)[0], 1)
	}
	all := scrapeOnce(t, c)
	require.LessOrEqual(t, series(all), defaultMaxSeries)
	calls := func(of func(*dto.Metric) bool) (n uint64) {
		for _, m := range all[layerTime].Metric {
			if has(m, "layer", "return") && of(m) {
				n += m.Histogram.GetSampleCount()
			}
		}
		return n
	}
	require.EqualValues(t, 4*len(devices), calls(func(*dto.Metric) bool { return true }))
	c = NewCollector(list(devices), Options{Trace: 1, MaxSeries: 1})
	scrapeOnce(t, c)
	for _, dev := range devices {
		exchange(t, admin.Channels(dev)[0], 1)
	}
	all = scrapeOnce(t, c)
	require.EqualValues(t, 4*len(devices), calls(func(m *dto.Metric) bool { return has(m, "device", overflow) }))
	require.LessOrEqual(t, series(all), overflowSeries(true))
}

// TestLayersEndWithTheListing: the tracer of a device that is listed no more leaves its place, and
// a device that has no place left shows no layers, and all else.
func TestLayersEndWithTheListing(t *testing.T) {
	dev, _ := loopback(t)
	listed := true
	c := NewCollector(func() iter.Seq2[string, *nfcomms.Device] {
		return func(yield func(string, *nfcomms.Device) bool) {
			if listed {
				yield("dev0", dev)
			}
		}
	}, Options{Trace: 64})
	scrapeOnce(t, c)
	var tracers []*trace.Tracer
	begin := func() error {
		tr, err := trace.Start(t.Context(), dev, trace.Options{})
		if err == nil {
			tracers = append(tracers, tr)
		}
		return err
	}
	for range trace.MaxTracers - 1 {
		require.NoError(t, begin())
	}
	require.ErrorIs(t, begin(), nfcomms.ErrBusy)
	listed = false
	scrapeOnce(t, c)
	require.NoError(t, begin())
	listed = true
	all := scrapeOnce(t, c)
	require.NotContains(t, all, "nfcomms_trace_lost_calls_total")
	require.Contains(t, all, "nfcomms_messages_total")
	tracers[0].Close()
	require.Contains(t, scrapeOnce(t, c), "nfcomms_trace_lost_calls_total")
}

func TestTraceOption(t *testing.T) {
	for _, every := range []int{-1, trace.MaxEvery + 1} {
		require.Panics(t, func() { NewCollector(One("dev0", nil), Options{Trace: every}) })
	}
}

package metrics

import (
	"context"
	"flag"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestMain lets a random test try fewer sequences than rapid does by default,
// unless a flag says otherwise: each step is a scrape with all of its checks.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	traceTime = time.Minute // else a scrape on a busy machine shows no layers of a device
	goleak.VerifyTestMain(m)
}

// fake is a device that says what the test wants.
type fake struct {
	bridge.Device // nil: what the tests do not use
	mu            sync.Mutex
	stats         bridge.Stats // without the channels
	health        bridge.Health
	err           error
	open          map[*fakeChannel]bool
	fabric        *fakeFabric
	board         *bridge.Board
}

// fakes hands the device under construction to the scheme.
var fakes = make(chan *fake, 1)

func init() {
	bridge.Register("metrics-fake", func(context.Context, bridge.Address, *bridge.Options) (bridge.Device, error) {
		return <-fakes, nil
	})
}

// newFake opens a fake.
func newFake(t testing.TB) (*fake, *nfcomms.Device) {
	f := &fake{open: map[*fakeChannel]bool{}, health: bridge.Health{Diagnostic: 1 << 31}}
	f.stats.Profile = new(bridge.Profile)
	f.stats.Mailboxes = []bridge.MailboxStats{{Slots: 64, Used: bridge.Both[int]{H2D: 3, D2H: 4}}}
	fakes <- f
	dev, err := nfcomms.Open(context.Background(), "metrics-fake:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return f, dev
}

func (f *fake) Info() bridge.Info {
	return bridge.Info{Address: "metrics-fake:", Driver: "fake", Major: 1, Minor: 2, Window: 64, Board: f.board}
}

func (f *fake) Stats() bridge.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	for c := range f.open {
		s.ChannelStats.Add(c.stats)
		s.Channels++
	}
	return s
}

func (f *fake) Health() (bridge.Health, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health, f.err
}

func (f *fake) Close() error { return nil }

func (f *fake) Subscribe(_ context.Context, t bridge.Target) (bridge.Channel, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &fakeChannel{f: f, target: t}
	f.open[c] = true
	return c, nil
}

// fakeChannel counts what the test says.
type fakeChannel struct {
	bridge.Channel // nil
	f              *fake
	target         bridge.Target
	stats          bridge.ChannelStats
}

func (c *fakeChannel) Target() bridge.Target { return c.target }

func (c *fakeChannel) Stats() bridge.ChannelStats {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return c.stats
}

func (c *fakeChannel) Close() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if c.f.open[c] {
		delete(c.f.open, c)
		c.f.stats.ChannelStats.Add(c.stats)
	}
	return nil
}

// Send counts a message of the length.
func (c *fakeChannel) Send(_ context.Context, msg []byte) error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.stats.Direct.H2D.Messages++
	c.stats.Direct.H2D.Bytes += uint64(len(msg))
	return nil
}

// list lists devices by name.
func list(devices map[string]*nfcomms.Device) func() iter.Seq2[string, *nfcomms.Device] {
	return func() iter.Seq2[string, *nfcomms.Device] {
		return func(yield func(string, *nfcomms.Device) bool) {
			for name, dev := range devices {
				if !yield(name, dev) {
					return
				}
			}
		}
	}
}

// scrape gathers once.
func scrapeOnce(t testing.TB, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(c))
	return gather(t, reg)
}

func gather(t testing.TB, g prometheus.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := g.Gather()
	require.NoError(t, err)
	m := map[string]*dto.MetricFamily{}
	for _, f := range all {
		m[f.GetName()] = f
	}
	return m
}

// find returns the metric of a family with these labels: "device", "sim0", ….
func find(t testing.TB, all map[string]*dto.MetricFamily, name string, labels ...string) *dto.Metric {
	t.Helper()
	for _, m := range all[name].GetMetric() {
		matches := true
		for pair := range slices.Chunk(labels, 2) {
			matches = matches && has(m, pair[0], pair[1])
		}
		if matches {
			return m
		}
	}
	t.Fatalf("no %s{%s}", name, strings.Join(labels, " "))
	return nil
}

// has reports whether a metric has a label of that value.
func has(m *dto.Metric, name, value string) bool {
	return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
		return l.GetName() == name && l.GetValue() == value
	})
}

// value returns the value of the one metric of a family with these labels.
func value(t testing.TB, all map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	m := find(t, all, name, labels...)
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// series counts the series that a scrape in the text format has.
func series(all map[string]*dto.MetricFamily) (n int) {
	for _, f := range all {
		for _, m := range f.Metric {
			n++
			if h := m.Histogram; h != nil {
				n += len(h.Bucket) + 2 // +Inf and the sum; the count is the one above
			}
		}
	}
	return n
}

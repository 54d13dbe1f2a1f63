package metrics

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestChannelsAreOptional: without the option no channel has a series.
func TestChannelsAreOptional(t *testing.T) {
	_, dev := newFake(t)
	subscribe(t, dev, 5)
	for name := range scrapeOnce(t, NewCollector(One("dev0", dev), Options{})) {
		require.NotContains(t, name, "_channel_")
	}
	all := scrapeOnce(t, NewCollector(One("dev0", dev), Options{Channels: true}))
	require.Len(t, all["nfcomms_channel_blocked_calls"].Metric, 4, "the channel and the rest")
	require.EqualValues(t, channelSeries, countOf(all, "5"))
	require.EqualValues(t, channelSeries, countOf(all, overflow))
}

// countOf counts the series of a channel.
func countOf(all map[string]*dto.MetricFamily, channel string) (n int) {
	for _, f := range all {
		for _, m := range f.Metric {
			if has(m, "channel", channel) {
				n++
			}
		}
	}
	return n
}

func subscribe(t testing.TB, dev *nfcomms.Device, target nfcomms.Target) *nfcomms.Channel {
	t.Helper()
	ch, err := dev.Subscribe(context.Background(), target)
	require.NoError(t, err)
	return ch
}

// TestChannelSuccessor: a channel that closes while the next one to its target
// is open already is no duplicate.
func TestChannelSuccessor(t *testing.T) {
	_, dev := newFake(t)
	for range 2 {
		require.NoError(t, subscribe(t, dev, 9).Send(context.Background(), make([]byte, 10)))
	}
	all := scrapeOnce(t, NewCollector(One("dev0", dev), Options{Channels: true}))
	require.EqualValues(t, 2, value(t, all, "nfcomms_channel_messages_total", "channel", "9", "direction", "h2d"))
}

// channelModel drives a device and checks each scrape against the one before.
type channelModel struct {
	t        *testing.T
	dev      *nfcomms.Device
	reg      *prometheus.Registry
	most     int // series
	channels []*nfcomms.Channel
	sent     float64
	before   map[string]float64
	next     nfcomms.Target
}

func (m *channelModel) open(*rapid.T) {
	m.next++ // a target that returns may start from zero
	m.channels = append(m.channels, subscribe(m.t, m.dev, m.next))
}

// pick returns the place of a channel; one is opened if there is none.
func (m *channelModel) pick(t *rapid.T) int {
	if len(m.channels) == 0 {
		m.open(t)
	}
	return rapid.IntRange(0, len(m.channels)-1).Draw(t, "channel")
}

func (m *channelModel) send(t *rapid.T) {
	ch := m.channels[m.pick(t)]
	for range rapid.IntRange(1, 5).Draw(t, "messages") {
		_ = ch.Send(context.Background(), nil)
		m.sent++
	}
}

func (m *channelModel) close(t *rapid.T) {
	i := m.pick(t)
	_ = m.channels[i].Close()
	m.channels = append(m.channels[:i], m.channels[i+1:]...)
}

// check scrapes: no count falls, and nothing is exported twice.
func (m *channelModel) check(t *rapid.T) {
	all := gather(m.t, m.reg)
	now, sum := map[string]float64{}, 0.0
	for _, metric := range all["nfcomms_channel_messages_total"].GetMetric() {
		for _, l := range metric.Label {
			if l.GetName() == "channel" {
				now[l.GetValue()] += metric.Counter.GetValue()
			}
		}
		sum += metric.Counter.GetValue()
	}
	if sum > m.sent {
		t.Fatalf("%v messages told of %v: %v", sum, m.sent, now)
	}
	for channel, before := range m.before {
		if after, there := now[channel]; there && after < before {
			t.Fatalf("channel %s fell from %v to %v", channel, before, after)
		}
	}
	if n := series(all); n > m.most {
		t.Fatalf("%d series", n)
	}
	m.before = now
}

// TestChannelsNeverFall: while more channels than there is room for open, send and close in any
// order, the counts of those shown and of the rest only grow. Together they never exceed the
// messages that were sent.
func TestChannelsNeverFall(t *testing.T) {
	_, dev := newFake(t)
	fixed := series(scrapeOnce(t, NewCollector(One("dev0", dev), Options{})))
	rapid.Check(t, func(r *rapid.T) {
		_, dev := newFake(t)
		m := &channelModel{t: t, dev: dev, reg: prometheus.NewPedanticRegistry()}
		m.reg.MustRegister(NewCollector(One("dev0", dev), Options{Channels: true, MaxSeries: fixed + 4*channelSeries}))
		m.most = fixed + 4*channelSeries
		r.Repeat(map[string]func(*rapid.T){"open": m.open, "send": m.send, "close": m.close, "": m.check})
	})
}

// TestChannelEviction: when a second device needs room, channels give theirs
// up, and their counts stay where they were.
func TestChannelEviction(t *testing.T) {
	_, a := newFake(t)
	_, b := newFake(t)
	devices := map[string]*nfcomms.Device{"a": a}
	reg := prometheus.NewPedanticRegistry()
	one := series(scrapeOnce(t, NewCollector(One("a", a), Options{})))
	reg.MustRegister(NewCollector(list(devices), Options{Channels: true, MaxSeries: 2*one + 7*channelSeries}))
	var open []*nfcomms.Channel
	for i := range 30 {
		open = append(open, subscribe(t, a, nfcomms.Target(i)))
		require.NoError(t, open[i].Send(context.Background(), nil))
	}
	total := func() (shown int, sum float64) {
		all := gather(t, reg)
		require.LessOrEqual(t, series(all), 2*one+7*channelSeries)
		for _, m := range all["nfcomms_channel_messages_total"].Metric {
			sum += m.Counter.GetValue()
		}
		for i := range open {
			if countOf(all, strconv.Itoa(i)) > 0 {
				shown++
			}
		}
		return shown, sum
	}
	before, sum := total()
	require.Greater(t, before, 6)
	require.EqualValues(t, 30, sum)
	devices["b"] = b
	after, _ := total()
	require.Positive(t, after)
	require.Less(t, after, before)
	require.NoError(t, open[29].Send(context.Background(), nil))
	_, sum = total()
	require.LessOrEqual(t, sum, 31.0, fmt.Sprintf("%d channels shown", after))
	delete(devices, "b")
	again, _ := total()
	require.Equal(t, after, again, "a channel that lost its place gets none later")
}

// TestChannelsOfAName: the channels of a listener, which share its target, are one series by its name.
func TestChannelsOfAName(t *testing.T) {
	dev := openSim(t, 0)
	ctx := context.Background()
	l, err := dev.Listen(ctx, "thumbnails")
	require.NoError(t, err)
	near, err := dev.Dial(ctx, "thumbnails")
	require.NoError(t, err)
	far, err := l.Accept(ctx)
	require.NoError(t, err)
	sent := nfcomms.SendCase(near, make([]byte, 10)).Start(ctx)
	_, err = far.Receive(ctx, make([]byte, 10))
	require.NoError(t, err)
	_, err = sent.Wait(ctx)
	require.NoError(t, err)
	all := scrapeOnce(t, NewCollector(One("dev0", dev), Options{Channels: true}))
	for _, direction := range []string{"h2d", "d2h"} {
		require.EqualValues(t, 1, value(t, all, "nfcomms_channel_messages_total", "channel", "thumbnails", "direction", direction))
	}
	require.Zero(t, countOf(all, l.Target().String()))
}

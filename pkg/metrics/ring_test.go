//go:build linux

package metrics

import (
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// TestRings: heads, lag and the cost of the first touch are on the page while a
// ring is open, and every metric is documented.
func TestRings(t *testing.T) {
	ctx := t.Context()
	name := fmt.Sprintf("metrics-%d", os.Getpid())
	warm, err := ring.Create(name, ring.Config{Packets: 7, Prewarm: true})
	require.NoError(t, err)
	defer warm.Close()
	idle, err := ring.Create(name+"-idle", ring.Config{})
	require.NoError(t, err)
	defer idle.Close()
	d, err := warm.Reader(ctx)
	require.NoError(t, err)
	w, err := warm.Writer(ctx)
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, w.Write(ctx, []byte("packet")))
	}
	for range 2 {
		_, err = d.Read(ctx, make([]byte, 6))
		require.NoError(t, err)
	}
	c := NewRingCollector(func() iter.Seq[*ring.Ring] { return slices.Values([]*ring.Ring{warm, idle}) })
	got := scrapeOnce(t, c)
	for _, v := range []struct {
		of     *ring.Ring
		metric string
		labels []string
		want   float64
	}{
		{warm, "packets", nil, 7}, {warm, "lag_packets", nil, 2}, {warm, "generations_total", nil, 1},
		{warm, "head_position", []string{"side", "writer"}, 4}, {warm, "head_position", []string{"side", "reader"}, 1},
		{idle, "packets", nil, 61}, {idle, "head_position", []string{"side", "writer"}, -42},
		{idle, "lag_packets", nil, 0}, {idle, "first_touch_seconds", nil, 0},
	} {
		require.Equal(t, v.want, value(t, got, "nfcomms_ring_"+v.metric, append([]string{"ring", v.of.Name()}, v.labels...)...), v.metric)
	}
	require.Positive(t, value(t, got, "nfcomms_ring_first_touch_seconds", "ring", name))
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, idle.Close())
	n, err := testutil.GatherAndCount(reg)
	require.NoError(t, err)
	require.Equal(t, 6, n, "a closed ring has no series")
	page, err := os.ReadFile("../../docs/ring.md")
	require.NoError(t, err)
	for _, d := range ringDescs.all {
		metric := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		require.Contains(t, string(page), "`"+metric+"`")
	}
}

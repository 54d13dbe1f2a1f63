//go:build cgo

package metrics

import (
	"context"
	"iter"
	"maps"
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
)

// TestPools: what a pool did is on the page, and every metric is documented.
func TestPools(t *testing.T) {
	ctx := t.Context()
	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	p, err := pool.New(ctx, dev, pool.Options{Program: nfcomms.Program{Name: "loopback"}, Processes: 2})
	require.NoError(t, err)
	for range 3 {
		_, err = p.Do(ctx, []byte("x"), make([]byte, 1))
		require.NoError(t, err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.Do(over, nil, nil)
	require.Error(t, err)
	c := NewPoolCollector(func() iter.Seq2[string, *pool.Pool] { return maps.All(map[string]*pool.Pool{"a": p}) })
	all := scrapeOnce(t, c)
	require.EqualValues(t, 3, value(t, all, "nfcomms_pool_exchanges_total", "pool", "a", "result", "ok"))
	require.EqualValues(t, 1, value(t, all, "nfcomms_pool_exchanges_total", "pool", "a", "result", "failed"))
	require.EqualValues(t, 2, value(t, all, "nfcomms_pool_processes", "pool", "a", "state", "wanted"))
	require.EqualValues(t, 3, find(t, all, "nfcomms_pool_exchange_duration_seconds", "pool", "a").Histogram.GetSampleCount())
	require.Equal(t, 67, series(all))
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, p.Close())
	require.NoError(t, dev.Close())
	page, err := os.ReadFile("../../docs/pools.md")
	require.NoError(t, err)
	for _, d := range poolDescs.all {
		require.Contains(t, string(page), "`"+regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]+"`")
	}
}

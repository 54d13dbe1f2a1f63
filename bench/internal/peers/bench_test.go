package peers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// BenchmarkPeers runs every contender of the peers command as a Go benchmark:
// one operation is one message or transfer with its answer.
func BenchmarkPeers(b *testing.B) {
	dev, err := nfcomms.Open(b.Context(), "sim:")
	require.NoError(b, err)
	defer func() { require.NoError(b, dev.Close()) }()
	c, err := compare.StartChild(b.Context())
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	small, err := newSmall(b.Context(), dev, c)
	require.NoError(b, err)
	benchmark(b, "small", small)
	for _, size := range []int{64 << 10, 1 << 20, 16 << 20} {
		bulk, err := newBulk(b.Context(), dev, c, size)
		require.NoError(b, err)
		benchmark(b, cli.SizeText(size), bulk)
	}
}

func benchmark(b *testing.B, group string, t *compare.Comparison) {
	b.Helper()
	for _, c := range t.Contenders {
		b.Run(group+"/"+c.Name, func(b *testing.B) {
			b.SetBytes(int64(c.Size))
			b.ReportAllocs()
			_, err := c.Run(b.Context(), b.N)
			require.NoError(b, err)
		})
	}
	require.NoError(b, t.Close())
}

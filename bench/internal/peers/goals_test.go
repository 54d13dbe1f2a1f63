package peers

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
)

// played is a comparison in which an operation of each contender takes so many microseconds.
func played(t *testing.T, size int, took map[string]int) *compare.Comparison {
	c := &compare.Comparison{}
	for name, us := range took {
		d := time.Duration(us) * time.Microsecond
		c.Contenders = append(c.Contenders, &compare.Contender{
			Name: name, Size: size, Batch: 1, CPU: func() (time.Duration, error) { return 0, nil },
			Run: func(_ context.Context, n int) (time.Duration, error) { return time.Duration(n) * d, nil },
		})
	}
	require.NoError(t, c.Play(t.Context(), 2, time.Millisecond, func(string) {}))
	c.Busy = "" // the times are no measurements
	return c
}

// TestBulkGoals: buffers in turn decide, not the same one each time.
func TestBulkGoals(t *testing.T) {
	took := map[string]int{
		compare.NameMemcpy: 300, compare.NameSendInd: 100, compare.NameReceiveInd: 100,
		compare.NameMemcpyCold: 94, compare.NameSendIndCold: 100, compare.NameReceiveIndCold: 98,
		compare.NameCopyOne: 150, compare.NameCopyTwo: 75, compare.NameCopyOneCold: 47, compare.NameCopyTwoCold: 94,
	}
	c := played(t, 64<<10, took)
	goals := bulkGoals(c, 64<<10)
	require.Equal(t, "64 KiB nfcomms SendInd, buffers in turn : memcpy, rate", goals[0].What)
	require.Equal(t, []string{"missed by 1.1 %", cli.ResultReached}, []string{goals[0].Result, goals[1].Result})
	require.Empty(t, bulkGoals(c, 32<<10))
	c.Busy = cli.ReasonBusy
	require.False(t, bulkGoals(c, 64<<10)[1].Measured())

	rows := rows(played(t, 1000, took), compare.NameSendInd, compare.CopiesBeside)
	limits := map[bool]float64{false: 75, true: 47} // the fastest copy, hot and with buffers in turn
	for _, row := range rows {
		want := float64(took[row.Peer])
		require.InDeltaSlice(t, []float64{1e3 * want, 1 / want, want / 100, want / limits[strings.HasSuffix(row.Peer, "in turn")]},
			[]float64{row.Ns.Median, row.GBs.Median, row.VsNFComms.Median, row.VsLimit.Median}, 1e-9)
	}
}

// TestGiftGoals: memory is held to the echo of a message, and to iceoryx2 where that is there.
func TestGiftGoals(t *testing.T) {
	const size = 64 << 10
	c := played(t, size, map[string]int{compare.NameHosts: 10, compare.NameGift(size): 14, compare.NameInPlace(nameIceoryx2, size): 20})
	results := func() (r []string) {
		for _, g := range giftGoals(c, size) {
			r = append(r, g.Result)
		}
		return r
	}
	require.Equal(t, []string{cli.ResultReached, "missed by 17 %"}, results())
	c.Contenders = slices.DeleteFunc(c.Contenders, func(c *compare.Contender) bool { return c.Name == compare.NameInPlace(nameIceoryx2, size) })
	require.Equal(t, []string{cli.ResultReached, cli.ResultNotMeasured + "there is no iceoryx2"}, results())
}

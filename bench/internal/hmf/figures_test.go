//go:build linux

package hmf

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

// TestReportRows: the figures of the report's tables, in the order of its columns (A.4.1 to A.4.3,
// sizes in 3.1). The row of six pairs has mean and maximum in another order there.
func TestReportRows(t *testing.T) {
	require.Equal(t, map[string]int{"hackomat": 24989, "foxi": 49999, "dopamine": 74959}, Presets)
	for name, size := range Presets {
		require.True(t, big.NewInt(int64(size)).ProbablyPrime(0), name)
	}
	var b strings.Builder
	for _, rows := range [][]Row{PaperInit, PaperOne, PaperDebug, PaperMulti} {
		for _, r := range rows {
			require.Equal(t, []int{8 << 10, 1_000_000}, []int{r.Packet, r.Packages})
			fmt.Fprintln(&b, r.Name, r.Pairs, r.Ring, r.MS.Min, r.MS.Mean, r.MS.Max, r.MS.SD, int(r.GrossKiB), int(r.NetKiB))
		}
	}
	require.Equal(t, `init 0 24989 103.734 106.169 124.207 0.7883 0 0
init 0 49999 200.974 205.1974 217.922 1.6418 0 0
init 0 74959 292.484 300.6551 320.287 2.4141 0 0
one pair 1 24989 0.8811951 0.92466 3.6139488 0.0189712 8651829 7570350
one pair 1 49999 0.880003 0.9286324 3.6070347 0.020274 8614819 7537966
one pair 1 74959 0.8819103 0.9251911 2.4299622 0.0207769 8646862 7566005
one pair, -O0 1 24989 0.8950233 0.9383918 3.7908554 0.0173679 8525223 7459570
one pair, -O0 1 49999 0.9031296 0.9527076 3.029108 0.0192867 8397120 7347480
one pair, -O0 1 74959 0.8969307 0.9403643 3.1490326 0.0204565 8507341 7443924
one pair 1 24989 0.8811951 0.92466 3.6139488 0.0189712 8651829 7570350
2 pairs 2 24989 0.9098053 1.6375465 4.3740273 0.0400216 9770746 8549403
3 pairs 3 49999 0.9119511 2.1991311 10.1079941 0.5903547 11301591 9888892
4 pairs 4 49999 0.8900166 2.8359817 74.7711658 0.8632161 11517232 10077578
6 pairs 6 74959 1.0950565 4.234499 154.3040276 2.9379332 11816924 10339808
`, b.String())
}

// slowWriter is a carrier whose packets take a time by a clock of its own: packet n takes n+1 ms.
type slowWriter struct {
	packet []byte
	now    time.Time
	sent   int
}

func (w *slowWriter) Reserve() ([]byte, error)     { return w.packet, nil }
func (w *slowWriter) Finish(context.Context) error { return nil }
func (w *slowWriter) Commit(context.Context, int) error {
	w.sent++
	w.now = w.now.Add(time.Duration(w.sent) * time.Millisecond)
	return nil
}

// TestGenerateMeasures: the first packet, the first package and the others have times of their own.
func TestGenerateMeasures(t *testing.T) {
	w := &slowWriter{packet: make([]byte, 64)}
	j := hmfJob{Payload: 64, Packages: 3, Package: 4, Spoil: -1}
	sent, err := j.generate(t.Context(), w, func() time.Time { return w.now })
	require.NoError(t, err)
	require.Equal(t, []float64{1e6, 10e6}, []float64{sent.FirstPacket, sent.First})
	require.Equal(t, 2, sent.Stat.N)
	require.InDelta(t, (26e6+42e6)/2, sent.Stat.Mean, 1e-3)
	require.InDelta(t, 42e6, sent.Stat.Max, 42e3)

	row := Row{}
	row.addRun(hmfRun{sent: *sent, got: hmfGot{Packets: 12, CPU: 2e9}, wall: time.Second})
	sent.CPU, sent.First = 1e9, 5e6
	row.addRun(hmfRun{sent: *sent, got: hmfGot{Packets: 12}, wall: 2 * time.Second})
	require.Equal(t, Row{FirstMS: 10, FirstPacketUS: 1000, Verified: 24, CPUS: 3, WallS: 2}, row)
}

// TestMerge: several pairs have the mean and the deviation of all their packages; pairs that are
// equal have that of one, however many they are.
func TestMerge(t *testing.T) {
	a, b := []float64{1, 2, 3, 6}, []float64{11, 13}
	all, want := merge([]stat.Stat{stat.Summarise(a), stat.Summarise(b)}), stat.Summarise(append(a, b...))
	require.Equal(t, want.N, all.N)
	require.InDeltaSlice(t, []float64{want.Mean, want.SD, want.Min, want.Max}, []float64{all.Mean, all.SD, all.Min, all.Max}, 1e-12)
	require.Equal(t, []float64{11, 13}, []float64{all.P50, all.P99}, "of the slowest pair")
	many := stat.Stat{N: 1_000_000, Mean: 5, SD: 0.5}
	require.InDelta(t, 0.5, merge([]stat.Stat{many, many, many, many, many, many}).SD, 1e-6)
	require.Zero(t, merge([]stat.Stat{{N: 1, Mean: 3}}).SD)
	require.Zero(t, merge(nil))
}

// TestRates: whole packets count as gross, their payload as net, of all pairs.
func TestRates(t *testing.T) {
	row := Row{Pairs: 2, Packet: 8 << 10}
	row.setRates(&Options{PerPackage: 1000, Payload: 7 << 10}, stat.Stat{Mean: 4})
	require.Equal(t, []float64{4_000_000, 3_500_000}, []float64{row.GrossKiB, row.NetKiB})
}

// TestPairFindings: each result turns where pairs differ by 10 %.
func TestPairFindings(t *testing.T) {
	row := func(pairs int, net, mean, sd float64) Row {
		return Row{Pairs: pairs, NetKiB: net, MS: stat.Stat{Mean: mean, SD: sd}}
	}
	shapes := func(many Row) (all []string) {
		for _, f := range PairFindings([]Row{row(1, 100, 10, 1), row(2, 1, 1, 1), many}) {
			all = append(all, f.Shape)
		}
		return all
	}
	const same, differs = cli.ShapeSame, cli.ShapeDiffers
	require.Equal(t, []string{same, same, same}, shapes(row(3, 111, 11.1, 1.23)))
	require.Equal(t, []string{differs, same, same}, shapes(row(3, 109, 11.1, 1.23)))
	require.Equal(t, []string{same, differs, same}, shapes(row(3, 111, 10.9, 1.23)))
	require.Equal(t, []string{same, same, differs}, shapes(row(3, 111, 11.1, 1.21)))
	require.Empty(t, shapes(row(1, 101, 10.1, 2)), "no more pairs")
	more := PairFindings([]Row{row(1, 100, 10, 1), row(2, 150, 9, 1)})[0]
	require.Equal(t, []string{"more pairs carry more together, by 10 % at least, 2 pairs over 1", "shows (1.50)"}, []string{more.What, more.Result})
}

// TestSizeFindings: the least rings do not count, and packet sizes are held apart.
func TestSizeFindings(t *testing.T) {
	rows := []Row{{Ring: 3, Packet: 4096, NetKiB: 1}, {Ring: 7, Packet: 4096, NetKiB: 100}, {Ring: 61, Packet: 4096, NetKiB: 149}, {Ring: 7, Packet: 8192, NetKiB: 900}}
	require.Equal(t, cli.ShapeSame, sizeFindings(rows)[0].Shape)
	rows[2].NetKiB = 151
	all := sizeFindings(rows)
	require.Equal(t, []string{cli.ShapeDiffers, cli.ShapeSame}, []string{all[0].Shape, all[1].Shape})
}

//go:build linux

package groups

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/group"
)

const tinyGroup = "group --members 3,5 --targets 2 --sizes 64,1KiB --rounds 2 --slice 1ms "

func TestGroup(t *testing.T) {
	t.Setenv("PATH", "") // no MPI: it takes its time
	svg := filepath.Join(t.TempDir(), "g.svg")
	var r Report
	clitest.Decode(t, clitest.MustRun(t, strings.Fields(tinyGroup+"--transports mesh --algorithms auto,isend,isend-irecv,allgather --output json --plot "+svg)...), &r)
	require.Equal(t, "group", r.Command)
	require.Len(t, r.Rows, 4*(4+7))
	for _, row := range r.Rows {
		require.Positive(t, row.Step.Mean, row.Name)
		require.GreaterOrEqual(t, row.Step.Max, row.Step.Min)
	}
	require.Equal(t, []string{"OpenMPI: not measured: not installed: there is no mpicc (Debian: libopenmpi-dev, openmpi-bin)", groupNoPeers}, r.NotMeasured)
	require.Len(t, r.Goals, 7)
	require.Contains(t, r.Goals[0].Result, "not measured")
	require.GreaterOrEqual(t, len(r.Findings), 2)
	for _, v := range r.Volumes {
		if v.PaperKiB > 0 {
			require.InEpsilon(t, v.PaperKiB, v.ModelKiB, 1e-9, "the model is the report's")
		}
	}
	require.Equal(t, 32<<10, r.Volumes[len(r.Volumes)-1].Members)
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(text), "isend-irecv")
}

// TestGroupFindings: goals and shapes come from quiet comparisons alone.
func TestGroupFindings(t *testing.T) {
	r := &Report{}
	row := func(name string, members, size int, us float64) {
		r.Rows = append(r.Rows, Row{
			Transport: TransportMesh, Members: members, Targets: 4, Size: size, Name: name,
			Rounds: stat.Spread{Median: us}, ByRound: []float64{us}, CPU: stat.Spread{Min: 2 * us},
		})
	}
	for name, us := range map[string]float64{group.Auto: 11, "isend": 10, "isend-irecv": 12, "allgather": 30, nameLocal: 8} {
		row(name, 8, 64, us)
	}
	row("isend", 8, 64<<10, 200)
	row("isend-irecv", 8, 64<<10, 100)
	row("allgather", 16, 64, 90)
	r.conclude()
	require.InDelta(t, 11.0/8, r.Goals[1].Value, 1e-9)
	require.Equal(t, cli.ResultReached, r.Goals[1].Result)
	require.Equal(t, "not measured: not in this run", r.Goals[2].Result)
	require.InDelta(t, 1.1, r.Goals[5].Value, 1e-9)
	require.InDelta(t, 1.1, r.Goals[6].Value, 1e-9)
	require.Equal(t, []Choice{{TransportMesh, 8, 4, 64, "isend", 1.1, 1.1}}, r.Sweep)
	var text strings.Builder
	r.writeSweep(&text)
	require.Contains(t, text.String(), "in 1 of 1 comparisons")
	require.Equal(t, "shows (1.20)", r.Findings[0].Result)
	require.Equal(t, "shows (0.50)", r.Findings[1].Result)
	require.Equal(t, "shows (1.50)", r.Findings[2].Result)
	require.Contains(t, r.Findings[2].What, "a step of 16 members over one of 8")
	other := &Report{Rows: slices.Clone(r.Rows)}
	for i, row := range other.Rows {
		switch {
		case row.Name == "isend-irecv":
			other.Rows[i].ByRound = []float64{map[int]float64{64: 9, 64 << 10: 210}[row.Size]}
		case row.Members == 16:
			other.Rows[i].ByRound = []float64{50}
		}
	}
	other.conclude()
	require.Len(t, other.Findings, 3)
	for _, f := range other.Findings {
		require.Equal(t, cli.ShapeDiffers, f.Shape, f.What)
	}
	for i, row := range other.Rows {
		us := row.ByRound[0]
		other.Rows[i].ByRound = []float64{us, us, us}
		if row.Name == "isend-irecv" || row.Members == 16 {
			other.Rows[i].ByRound = []float64{us, 9 * us, us / 9}
		}
	}
	other.Findings = nil
	other.conclude()
	for i, f := range other.Findings {
		require.Equal(t, cli.ShapeOpen, f.Shape, f.What)
		want := []string{"0.90 (0.10..8.10)", "1.05 (0.12..9.45)", "0.83 (0.09..7.50)"}[i]
		require.Equal(t, "not decided: rounds disagree, "+want+" times", f.Result)
	}
	for i := range r.Rows {
		r.Rows[i].Busy = cli.ReasonBusy
	}
	r.Goals, r.Findings, r.Sweep = nil, nil, nil
	r.conclude()
	for _, g := range r.Goals {
		require.Equal(t, "not measured: machine busy", g.Result)
	}
	for _, f := range r.Findings {
		require.Equal(t, []string{cli.ShapeUnknown, cli.ReasonBusy}, []string{f.Shape, f.Why}, f.What)
	}
	require.Equal(t, "not measured: machine busy", r.Findings[0].Result)
	require.Len(t, r.Findings, 2)
}

// TestGroupColumns: times are microseconds of a step, and the picture has the rate of all members.
func TestGroupColumns(t *testing.T) {
	r := &Report{}
	c := &compare.Contender{Name: "isend", Batch: 10, Samples: stat.NewRecorder()}
	c.Rounds = slices.Grow(c.Rounds, 2)[:2]
	for i, us := range []time.Duration{400, 600} {
		c.Rounds[i].Ops, c.Rounds[i].Timed = 100, us*time.Microsecond
	}
	for _, d := range []time.Duration{40 * time.Microsecond, 80 * time.Microsecond} {
		c.Samples.Record(d)
	}
	r.add(exchangeShape{TransportMesh, 8, 4, 1000}, c, "")
	row := &r.Rows[0]
	require.InEpsilonSlice(t, []float64{6, 8, 5, 4, 6}, []float64{row.Step.Mean, row.Step.Max, row.Rounds.Median, row.Rounds.Min, row.Rounds.Max}, 0.01)
	row.CPU.Median = 10
	var b strings.Builder
	r.Table(&b)
	require.Regexp(t, `isend +mesh +8 +4 +1.kB +6\.00 +8\.0 +4\.00–6\.00 +10\.00 *\n`, b.String())
	p := r.Draw()
	require.Equal(t, 1000.0, p.Series[0].X[0])
	require.InDelta(t, 8*4*1000/5.0/1e3, p.Series[0].Y[0], 1e-9)
}

func TestGroupProcesses(t *testing.T) {
	t.Setenv("PATH", "")
	out := clitest.MustRun(t, strings.Fields(tinyGroup+"--short --members 3 --sizes 256KiB --transports shm --algorithms isend,allgather")...)
	for _, want := range []string{"isend", "allgather", "shm", "OpenMPI: not measured", "983040"} {
		require.Contains(t, out, want)
	}
}

// TestGroupHandlersAndDelays: algorithms with a handler are contenders, and the delay of those that
// gather reaches members in this process and in others.
func TestGroupHandlersAndDelays(t *testing.T) {
	t.Setenv("PATH", "")
	var r Report
	clitest.Decode(t, clitest.MustRun(t, strings.Fields("group --members 3 --targets 2 --sizes 64 --rounds 1 --slice 1ms --transports mesh,shm --algorithms allgather,allgather-l,isend-l --delay-member 100us --output json")...), &r)
	rows := slices.DeleteFunc(r.Rows, func(row Row) bool { return !slices.Contains(allAlgorithms(), row.Name) })
	require.Len(t, rows, 2*3)
	for _, row := range rows {
		if row.Name != "isend-l" { // it does not gather
			require.Greater(t, row.Step.Min, 3*100.0, "%s, %s, in µs", row.Transport, row.Name)
		}
	}
	require.NotContains(t, groupAlgorithms(), "isend-l", "auto chooses none with a handler")
}

// TestGroupSteps: --steps is the report's comparison, but for what is given.
func TestGroupSteps(t *testing.T) {
	var r Report
	clitest.Decode(t, clitest.MustRun(t, strings.Fields("group --steps --short --members 2 --targets 1 --rounds 1 --slice 1ms --transports fabric --address sim:?torus=2x1x1 --output json")...), &r)
	require.Len(t, r.Rows, 2*7)
	require.Equal(t, []int{1920, 7680}, []int{r.Rows[0].Size, r.Rows[13].Size})
	require.Equal(t, []string{"isend", "isend-irecv"}, []string{r.Rows[12].Name, r.Rows[13].Name})
}

func TestGroupNodes(t *testing.T) {
	t.Setenv("PATH", "")
	out := clitest.MustRun(t, strings.Fields(tinyGroup+"--members 3 --sizes 64 --transports fabric --address sim:?torus=2x1x1 --algorithms isend,bruck")...)
	require.Contains(t, out, "fabric")
	code, _, errs := clitest.Run(t.Context(), strings.Fields("group --transports fabric --address sim: --members 2 --sizes 8")...)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "no fabric")
}

// TestGroupCountsAllProcesses: members of another algorithm are not somebody else who uses the
// machine.
func TestGroupCountsAllProcesses(t *testing.T) {
	var c compare.Comparison
	var all time.Duration
	for _, algorithm := range []string{"isend", "allgather"} {
		side, err := newProcessSide(t.Context(), exchangeShape{TransportShm, 2, 1, 8}, group.Options{Algorithm: algorithm})
		require.NoError(t, err)
		_, err = side.Run(t.Context(), 1_000)
		require.NoError(t, err)
		c.Contenders = append(c.Contenders, side)
		used, err := side.CPU()
		require.NoError(t, err)
		all += used
	}
	used, err := c.CPU()
	require.NoError(t, err)
	require.Equal(t, all, used)
	require.NoError(t, c.Close())
}

// TestGroupMemberFails: the end of a member process ends the comparison.
func TestGroupMemberFails(t *testing.T) {
	side, err := newProcessSide(t.Context(), exchangeShape{TransportShm, 2, 1, 8}, group.Options{Algorithm: "no-such"})
	require.NoError(t, err)
	_, err = side.Run(t.Context(), 1)
	require.Error(t, err)
	require.Error(t, side.Close())
}

func TestGroupBadInput(t *testing.T) {
	for line, says := range map[string]string{
		"--members 1":         "--members 1 is not 2 to 1024",
		"--members 1025":      "--members 1025 is not 2 to 1024",
		"--targets 0":         "--targets 0 is less than 1",
		"--sizes none":        `size "none"`,
		"--algorithms isendl": `--algorithms "isendl" is none of`,
		"--transports smoke":  `--transports "smoke" is none of`,
		"--rounds 0":          "--rounds 0 is less than 1",
		"--delay-byte -1ns":   "are not negative",
		"--slice 0s":          "--slice 0s is not a positive time",
		"--transports=":       "a list is empty",
		"--output xml":        "neither table nor json",
	} {
		code, out, errs := clitest.Run(t.Context(), append([]string{"group"}, strings.Fields(line)...)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Empty(t, out)
		require.Contains(t, errs, says)
	}
}

// TestNeighbours: who is sent to by a member has it as a source.
func TestNeighbours(t *testing.T) {
	for members := 2; members <= 6; members++ {
		for n := 1; n < members; n++ {
			s := exchangeShape{TransportMesh, members, n, 8}
			for rank := range members {
				targets, _ := s.neighbours(rank)
				require.Len(t, targets, n)
				for _, to := range targets {
					require.NotEqual(t, rank, to)
					_, sources := s.neighbours(to)
					require.Contains(t, sources, rank)
				}
			}
			m, err := joinMembers(t.Context(), s, group.NewMesh(members), group.Options{})
			require.NoError(t, err)
			_, err = m.run(t.Context(), 3)
			require.NoError(t, err)
			require.NoError(t, m.close())
		}
	}
}

func TestGroupNativePeers(t *testing.T) {
	t.Setenv("PATH", clitest.FakeToolchain(t, clitest.FakePeer))
	var g Report
	clitest.Decode(t, clitest.MustRun(t, strings.Fields("group --members 2 --targets 1 --sizes 64 --rounds 1 --slice 1ms --transports shm --algorithms isend --output json")...), &g)
	require.Equal(t, []string{groupNoPeers}, g.NotMeasured)
	require.Len(t, g.Rows, 3)
	require.Equal(t, mpiNames[1], g.Rows[2].Name)
	require.InDelta(t, 1e-2, g.Rows[2].Step.Mean, 1e-9, "microseconds of a step; a batch has 100")
}

// TestGroupTheory: beside an algorithm is the model's time of its step as a rate; a peer has none.
func TestGroupTheory(t *testing.T) {
	r := &Report{Label: "measured within one machine"}
	for _, name := range []string{"isend", "grpc"} {
		for _, size := range []int{1 << 10, 1 << 16} {
			r.Rows = append(r.Rows, Row{Transport: TransportMesh, Members: 8, Targets: 4, Size: size, Name: name, Rounds: stat.Spread{Median: 10}})
		}
	}
	p := r.Draw()
	require.Len(t, p.Series, 3)
	require.Contains(t, p.Note, "; measured within one machine; dashed: the model's guess")
	for _, all := range group.Predict(group.Load{Members: 8, Frames: 4, Packages: 4, Bytes: 1 << 16}, group.MeshCost()) {
		if all.Algorithm == "isend" {
			require.InEpsilon(t, 8*4*float64(1<<16)/float64(all.Time), p.Series[2].Y[1], 1e-9)
			r.Rows[0].Transport, r.Rows[1].Transport = "rings", "rings"
			require.Len(t, r.Draw().Series, 1, "the model is of a mesh")
			require.NotContains(t, r.Draw().Note, "dashed")
			return
		}
	}
	t.Fatal("the model has no isend")
}

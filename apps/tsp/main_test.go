package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cli runs a command line and returns what it printed.
func cli(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return commandtest.Run(ctx, "tsp", tsp, args...)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "map")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestTSP(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "tour.svg")
	code, out, errs := cli(t.Context(), "--restarts", "60", "--climbers", "9", "--svg", svg)
	require.Equal(t, command.ExitOK, code, errs)
	require.Empty(t, errs, "quiet in a pipe")
	require.Contains(t, out, "100 cities, 60 random restarts, seed 1")
	require.Contains(t, out, "% over the proved optimum of 22447")
	require.Contains(t, out, "verified: the tour visits each city once")
	require.Contains(t, out, "simulated device  ")
	require.Regexp(t, `\n[1-9] climbers of the device copied the distances to memory of their own\n`, out) // the last may come too late
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(text, new(struct{ XMLName xml.Name })))
	require.Equal(t, 100, strings.Count(string(text), "<circle"))
}

// TestSmallDevice has more climbers than contexts.
func TestSmallDevice(t *testing.T) {
	for _, coordinates := range []string{"0 0\n0 1\n1 1\n1 0\n", "5 5\n5 5\n5 5\n5 5\n5 5\n", "0 0\n1e1 0\n2e1 0\n-30 0\n"} {
		code, out, errs := cli(t.Context(), "--address", "sim:?contexts=1&microengines=12", "--restarts", "200", "--cities", write(t, coordinates))
		require.Equal(t, command.ExitOK, code, errs)
		require.Contains(t, out, "the device has no room for more than 5 climbers")
		require.Contains(t, out, "verified")
	}
}

// TestNoLocalMemory: climbers without room for distances of their own read the manager's.
func TestNoLocalMemory(t *testing.T) {
	code, out, errs := cli(t.Context(), "--address", "sim:?ctm=4096&imem=4096&emem=98304", "--restarts", "60", "--climbers", "9")
	require.Equal(t, command.ExitOK, code, errs)
	require.Contains(t, out, "\n0 climbers of the device copied")
	require.Contains(t, out, "goroutines found the same")
}

// TestBothTakeTheEarliest: of equal tours both sides name the same ascent.
func TestBothTakeTheEarliest(t *testing.T) {
	code, out, errs := cli(t.Context(), "--restarts", "300", "--climbers", "30", "--cities", write(t, "0 0\n0 1\n1 1\n1 0\n"))
	require.Equal(t, command.ExitOK, code, errs)
	require.Contains(t, out, "shortest tour: 4, of climb 0\n")
}

func TestBadInput(t *testing.T) {
	for cities, says := range map[string]string{
		"1 1\n2 2\nthree 3\n4 4\n":        `:3: "three 3" is no city`,
		"1 1\n2 2\n3 NaN\n":               `:3: "3 NaN" is no city`,
		"1 1\n2 2.5\n":                    `:2: "2 2.5" is no city`,
		"1 1\n2 2 2\n":                    `:2: "2 2 2" is no city`,
		"1 1\n2 600000000\n":              `:2: "2 600000000" is no city`,
		"1 1\n2 2\n3 3\n":                 "has 3 cities: a tour to improve needs 4",
		"":                                "has 0 cities",
		"NAME: x\n1 1 1\n":                `"1 1 1" stands before NODE_COORD_SECTION`,
		"EDGE_WEIGHT_TYPE: GEO\n":         "of type GEO: only EUC_2D is known",
		strings.Repeat("1 1\n", 1e6):      "has more than 1000 cities",
		strings.Repeat("x", 1<<17) + "\n": "token too long",
	} {
		code, out, errs := cli(t.Context(), "--cities", write(t, cities))
		require.Equal(t, command.ExitInput, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	for line, says := range map[string]string{
		"--restarts 0":            "--restarts 0 is not 1 to 2^31",
		"--climbers 0":            "--climbers 0 is not 1 to 1024",
		"--cities /none/there":    "no such file",
		"--seed x":                `"x"`,
		"--address card:0":        `"card"`,
		"something":               `"something" is no flag`,
		"--restarts 1 --svg /x/y": "no such file",
	} {
		code, _, errs := cli(t.Context(), strings.Fields(line)...)
		require.Equal(t, command.ExitInput, code, line)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	code, out, errs := cli(t.Context(), "--help")
	require.Equal(t, command.ExitOK, code)
	require.Empty(t, out)
	require.Contains(t, errs, "usage: tsp")
}

// some returns n cities.
func some(n int) (list []city) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range n {
		list = append(list, city{draw.Int32N(2000) - 1000, draw.Int32N(2000)})
	}
	return list
}

func open(t *testing.T) *nfcomms.Device {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), "sim:?islands=2")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// TestInterrupted ends a search half way: all processes leave, and the device finds
// the next tour.
func TestInterrupted(t *testing.T) {
	dev := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	s := settings{restarts: 1 << 30, climbers: 20}
	stop := errors.New("enough")
	_, err := onDevice(ctx, dev, some(30), settings{restarts: 100_000, climbers: 20}, func(int) { cancel(stop) })
	require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
	_, err = inGoroutines(ctx, some(30), s)
	require.ErrorIs(t, err, stop)
	r, err := onDevice(t.Context(), dev, some(30), settings{restarts: 50, climbers: 20}, func(int) {})
	require.NoError(t, err)
	require.NoError(t, (&cityMap{cities: some(30)}).check(r.tour, r.length))
	code, _, errs := cli(ctx)
	require.Equal(t, command.ExitInterrupted, code)
	require.Equal(t, "tsp: interrupted\n", errs)
}

// TestManagerRefuses: what the manager cannot do it refuses, and goes on.
func TestManagerRefuses(t *testing.T) {
	dev := open(t)
	image, err := program.Build(t.Context(), source, program.Options{Debug: true})
	require.NoError(t, err)
	_, err = dev.Load(t.Context(), image)
	require.NoError(t, err)
	manager, err := dev.Run(t.Context(), nfcomms.Program{Name: "tsp.manager"})
	require.NoError(t, err)
	ch := manager.Channels[0]
	for _, o := range []order{{3, 1, 0}, {1001, 1, 0}, {10, 0, 0}, {10, 1 << 32, 0}, {math.MaxUint64, 1, 0}} {
		_, err := give(t.Context(), ch, some(10), o)
		require.ErrorIs(t, err, nfcomms.ErrRange, "%v", o)
	}
	_, err = give(t.Context(), ch, some(9), order{10, 1, 0})
	require.ErrorIs(t, err, nfcomms.ErrSizeMismatch)
	_, err = give(t.Context(), ch, some(10), order{10, 1, 0})
	require.NoError(t, err)
	require.NoError(t, manager.Close())
	small, err := nfcomms.Open(t.Context(), "sim:?emem=1MiB")
	require.NoError(t, err)
	_, err = onDevice(t.Context(), small, some(1000), settings{restarts: 1, climbers: 1}, func(int) {})
	require.ErrorIs(t, err, nfcomms.ErrRange)
	require.NoError(t, small.Close())
}

func TestDistance(t *testing.T) {
	list := append(some(200), city{-1 << 29, -1 << 29}, city{1 << 29, 1 << 29})
	for _, a := range list {
		for _, b := range list {
			want := math.Floor(math.Hypot(float64(a.X)-float64(b.X), float64(a.Y)-float64(b.Y)) + 0.5)
			require.Equal(t, int32(want), distance(a, b))
		}
	}
}

func TestWrongTours(t *testing.T) {
	m := &cityMap{cities: some(10), optimum: 100}
	require.NoError(t, m.check(m.cities, tourLength(m.cities)))
	require.ErrorContains(t, m.check(m.cities, 5), "not 5")
	require.ErrorContains(t, m.check(m.cities[1:], 5), "each city once")
	require.ErrorContains(t, m.check(append(some(9), city{}), 5), "each city once")
	require.Equal(t, ", which is the proved optimum", m.compare(100))
	there := result{tour: m.cities, length: 7}
	require.ErrorContains(t, report(io.Discard, settings{}, m, "simulated device", there, result{tour: m.cities, length: 8}), "another tour")
}

// TestData: the map that comes with the program says what data.py found.
func TestData(t *testing.T) {
	m, err := readMap("")
	require.NoError(t, err)
	require.Len(t, m.cities, 100)
	optimum := strconv.FormatUint(m.optimum, 10)
	require.Contains(t, hundred, "COMMENT: optimum "+optimum)
	require.LessOrEqual(t, m.optimum, tourLength(m.cities))
}

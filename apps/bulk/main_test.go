package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cli runs a command line and returns what it printed.
func cli(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// folder makes files: one of 300,001 bytes, an empty one, one byte further down.
func folder(t *testing.T) (dir string, contents []byte) {
	t.Helper()
	dir = t.TempDir()
	big := make([]byte, 300001)
	for i := range big {
		big[i] = byte(i * i >> 3)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), big, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "c"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c", "d"), []byte("z"), 0o600))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "e")))
	return dir, append(big, 'z')
}

func TestBulkJSON(t *testing.T) {
	dir, contents := folder(t)
	for _, chunk := range []string{"65536", "1000", "1000000"} {
		t.Run(chunk, func(t *testing.T) {
			code, out, errs := cli(t.Context(), "--output", "json", "--chunk", chunk, "--channels", "3", dir)
			require.Empty(t, errs)
			require.Equal(t, exitOK, code)
			var r report
			d := json.NewDecoder(strings.NewReader(out))
			d.DisallowUnknownFields()
			require.NoError(t, d.Decode(&r))
			require.Equal(t, 3, r.Files, "links are left out")
			require.EqualValues(t, len(contents), r.Bytes)
			require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(contents)), r.SHA256)
			for _, p := range []path{r.H2D, r.D2H, r.Both} {
				require.Positive(t, p.Seconds)
				require.Positive(t, p.GBs)
				require.InEpsilon(t, p.GBs/p.MemcpyGBs, p.OverMemcpy, 1e-9)
			}
		})
	}
}

func TestBulkTable(t *testing.T) {
	dir, _ := folder(t)
	code, out, errs := cli(t.Context(), filepath.Join(dir, "a"), dir)
	require.Empty(t, errs, "quiet in a pipe")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "4 files, 585.9 KiB to the simulated device and back, SHA-256 equal")
	require.Contains(t, out, "h2d, host to device")
	require.Contains(t, out, "ratio")
}

func TestBadInput(t *testing.T) {
	empty := t.TempDir()
	file := filepath.Join(empty, "nothing")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	full, _ := folder(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "name the files or folders to send, or --demo, and not both"},
		{[]string{"--demo", full}, "and not both"},
		{[]string{"--colour"}, "-colour"},
		{[]string{"--output", "xml", full}, `--output "xml" is neither table nor json`},
		{[]string{"--channels", "0", full}, "--channels 0 is not 1 to 64"},
		{[]string{"--chunk", "0", full}, "--chunk 0 is not 1 byte to 1 GiB"},
		{[]string{"--chunk", "big", full}, `"big"`},
		{[]string{filepath.Join(full, "gone")}, "no such file"},
		{[]string{full, os.DevNull}, "is neither a file nor a folder"},
		{[]string{file}, "nothing to send"},
		{[]string{empty}, "nothing to send"},
		{[]string{"--address", "card:0", full}, `"card"`},
		{[]string{"--address", "sim:?colour=red", full}, "colour"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			code, out, errs := cli(t.Context(), c.args...)
			require.Equal(t, exitInput, code, errs)
			require.Empty(t, out)
			require.Contains(t, errs, c.says)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
}

func TestHelp(t *testing.T) {
	code, out, errs := cli(t.Context(), "--help")
	require.Equal(t, exitOK, code)
	require.Empty(t, out)
	require.Contains(t, errs, "usage: bulk [flags] PATH")
	require.Contains(t, errs, "-channels number")
}

func TestFileThatVanishes(t *testing.T) {
	s := &stream{paths: []string{filepath.Join(t.TempDir(), "gone")}}
	_, err := s.Read(make([]byte, 1))
	require.ErrorAs(t, err, new(inputError))
	require.NoError(t, s.Close())
}

func TestInterruptedBefore(t *testing.T) {
	dir, _ := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, out, errs := cli(ctx, dir)
	require.Equal(t, exitInterrupted, code)
	require.Empty(t, out)
	require.Equal(t, "bulk: interrupted after 0 bytes there and back, all verified\n", errs)
}

// cancelAt is a reader of zeros that cancels once it gave so many bytes.
type cancelAt struct {
	left   int
	cancel context.CancelFunc
}

func (c *cancelAt) Read(p []byte) (int, error) {
	clear(p)
	if c.left -= len(p); c.left < 0 {
		c.cancel()
	}
	return len(p), nil
}

func (c *cancelAt) Close() error { return nil }

func TestInterruptedBetween(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	m, err := newMover(ctx, dev, options{channels: 2, chunk: 5000})
	require.NoError(t, err)
	const round = 2 * chunksPerChannel * 5000
	err = m.moveAll(ctx, &cancelAt{left: round, cancel: cancel}, command.Bar{})
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, round, m.report(&fileSet{}, "simulated").bytesMoved())
}

// TestChangedData has a mover without channels, so that nothing comes back.
func TestChangedData(t *testing.T) {
	m := &mover{sentSum: sha256.New(), backSum: sha256.New(), sent: [][]byte{make([]byte, 4)}, back: [][]byte{make([]byte, 4)}}
	err := m.moveAll(t.Context(), io.NopCloser(strings.NewReader("data")), command.Bar{})
	require.ErrorContains(t, err, "data came back changed")
	require.Zero(t, m.bytes)
}

func TestDemoRepeats(t *testing.T) {
	s := fileSet{paths: []string{"a", "b"}, bytes: 300}
	s.repeat(700)
	require.Equal(t, fileSet{paths: []string{"a", "b", "a", "b", "a", "b"}, bytes: 900}, s)
}

func TestDemoFindsTheToolchain(t *testing.T) {
	files, err := options{demo: true}.files(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, files.bytes, int64(demoBytes))
}

// TestMeter has one call inside another: their time counts once.
func TestMeter(t *testing.T) {
	var m meter
	start := time.Now()
	err := m.time(func() error {
		return m.time(func() error {
			for time.Since(start) < 2*time.Millisecond {
				continue
			}
			return io.EOF
		})
	})
	require.ErrorIs(t, err, io.EOF)
	require.LessOrEqual(t, m.total, time.Since(start))
	require.Positive(t, m.total)
}

func TestByteText(t *testing.T) {
	for n, text := range map[int64]string{0: "0 bytes", 2048: "2.0 KiB", 3 << 19: "1.5 MiB", 5 << 30: "5.00 GiB"} {
		require.Equal(t, text, byteText(n))
	}
}

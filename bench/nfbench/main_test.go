package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestHelp(t *testing.T) {
	for _, name := range []string{"", "latency", "throughput", "peers", "crowd", "model", "link", "fabric", "group", "paper", "stack", "hmf", "hmf init", "hmf one", "hmf multi", "hmf sweep"} {
		t.Run("nfbench "+name, func(t *testing.T) {
			args := append(strings.Fields(name), "--help")
			got := clitest.MustRun(t, args...)
			golden := filepath.Join("testdata", "help_"+strings.ReplaceAll(name, " ", "_")+".txt")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

func TestRootAloneShowsHelp(t *testing.T) {
	require.Equal(t, clitest.MustRun(t, "--help"), clitest.MustRun(t))
}

func TestCompletion(t *testing.T) {
	require.Contains(t, clitest.MustRun(t, "completion", "bash"), "nfbench")
	code, out, _ := clitest.Run(t.Context(), "__complete", "latency", "--output", "")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "table\njson\n")
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"nothing", `unknown command "nothing"`},
		{"latency extra", `unknown command "extra"`},
		{"latency --no-such", "unknown flag: --no-such"},
		{"model torus", `"torus" is no family of figures`},
		{"latency --batches many", `"many"`},
		{"latency --batches 0", "--batches 0 is less than 1"},
		{"latency --batch 0", "--batch 0 is less than 1"},
		{"latency --size 0", "--size 0 is not 1 to 56 bytes"},
		{"latency --size 57", "--size 57 is not 1 to 56 bytes"},
		{"latency --output xml", `--output "xml" is neither table nor json`},
		{"latency --address sim:?colour=red", "colour"},
		{"latency --address card:0", `"card"`},
		{"latency --address nowhere", "no scheme"},
		{"throughput --payload none", `size "none"`},
		{"throughput --sizes 1KiB,-2", `size "-2"`},
		{"throughput --sizes 0.5", `size "0.5"`},
		{"throughput --sizes 2MB --payload 1MB", "2 MB is more than the payload of 1 MB"},
		{"throughput --targets 1,zero", `"zero" is not a number from 1 to 64`},
		{"throughput --targets 65", `"65" is not a number from 1 to 64`},
		{"throughput --tests 0", "--tests 0 is less than 1"},
		{"throughput --direct 0", "--direct 0 is less than 1"},
		{"peers --rounds 0", "--rounds 0 is less than 1"},
		{"peers --slice 0s", "--slice 0s is not a positive time"},
		{"peers --idle -1s", "--idle -1s is not a positive time"},
		{"peers --blocked 0", "--blocked 0 is less than 1"},
		{"peers --sizes big", `size "big"`},
		{"crowd --counts 0", "--counts [0]: want numbers from 1 to 10000"},
		{"crowd --counts 1,10001", "want numbers from 1 to 10000"},
		{"crowd --load -1", "--load [-1]: want numbers from 0 to"},
		{"crowd --shape round", `--shape "round" is neither processes nor ports`},
		{"crowd --procs -1", "--procs -1 is not 0 to 1024"},
		{"crowd --rounds 0", "--rounds 0 is less than 1"},
		{"crowd --slice 0s", "--slice 0s is not a positive time"},
		{"crowd --sizes big", `size "big"`},
		{"scale --channels 0", "--channels [0]: want numbers from 1 to 1000000"},
		{"scale --blocked 10001", "--blocked [10001]: want numbers from 1 to 10000"},
		{"scale --rounds 0", "--rounds 0 is less than 1"},
		{"scale --slice 0s", "--slice 0s is not a positive time"},
		{"peer-serve", "accepts 1 arg(s), received 0"},
		{"gift-serve", "accepts 2 arg(s), received 0"},
	} {
		t.Run(c.line, func(t *testing.T) {
			code, out, errs := clitest.Run(t.Context(), strings.Fields(c.line)...)
			require.Equal(t, cli.ExitUsage, code)
			require.Empty(t, out)
			require.Contains(t, errs, c.says)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
}

func TestInterrupted(t *testing.T) {
	for _, command := range []string{"latency", "throughput", "peers", "crowd", "scale"} {
		t.Run(command, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			code, out, errs := clitest.Run(ctx, command)
			require.Equal(t, cli.ExitInterrupted, code)
			require.Empty(t, out)
			require.Equal(t, "nfbench: interrupted, nothing reported\n", errs)
		})
	}
}

func TestMain(m *testing.M) { clitest.Main(m, commands...) }

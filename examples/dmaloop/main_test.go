package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
)

// cli runs a command line and returns what it printed.
func cli(t *testing.T, args ...string) (code int, stdout, stderr string) {
	return commandtest.Run(t.Context(), "dmaloop", run, args...)
}

func TestLoop(t *testing.T) {
	code, out, errs := cli(t, "--transfers", "20", "--size", "4096")
	require.Equal(t, command.ExitOK, code, errs)
	require.Contains(t, out, "20 transfers of 4096 bytes there and back, every byte compared; simulated device")
	for _, variant := range []string{"synchronous", "overlapped", "futures"} {
		require.Contains(t, out, variant)
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--size", "12"}, "--size 12 is not a multiple of 8"},
		{[]string{"--size", "0"}, "--size 0"},
		{[]string{"--transfers", "0"}, "--transfers 0 is not positive"},
		{[]string{"--depth", "65"}, "--depth 65 is not 1 to 64"},
		{[]string{"more"}, `"more" is no flag`},
		{[]string{"--address", "card:0"}, `"card"`},
	} {
		code, out, errs := cli(t, c.args...)
		require.Equal(t, command.ExitInput, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, c.says)
		require.Equal(t, 1, strings.Count(errs, "\n"))
	}
}

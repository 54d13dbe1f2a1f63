package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Sensors of one island and of several, more than there are places before a listener, and
// some that see nothing.
func TestSensors(t *testing.T) {
	for line, says := range map[string]string{
		"": "these 2 events",
		"--sensors 20 --events 3 --address sim:?islands=4": "these 3 events",
		"--sensors 1 --above 65535 --readings 200001":      "log of 400002 bytes has these 0 events",
		"--sensors 2 --above 0 --events 100":               "these 100 events",
		"--address sim:?torus=2x1x1":                       "these 2 events",
	} {
		code, out, errs := commandtest.Run(t.Context(), "sensors", sensors, strings.Fields(line)...)
		require.Equal(t, command.ExitOK, code, errs)
		require.Empty(t, errs)
		require.Contains(t, out, "sensor 0: log of")
		require.Contains(t, out, says)
	}
}

func TestBadInput(t *testing.T) {
	for line, says := range map[string]string{
		"--sensors 0":        "--sensors 0 is not 1 to 50",
		"--events 0":         "--events 0 is not",
		"--above 65536":      "--above 65536",
		"--readings 0":       "--readings 0",
		"--readings 4194305": "--readings 4194305",
		"--address card:0":   `"card"`,
		"more":               "more",
	} {
		code, out, errs := commandtest.Run(t.Context(), "sensors", sensors, strings.Fields(line)...)
		require.Equal(t, command.ExitInput, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, says)
	}
}

// The output has every event.
func TestPrint(t *testing.T) {
	var out bytes.Buffer
	r := report{events: []event{{3, 65535}}, log: []uint16{0, 1, 2, 65535}}
	require.NoError(t, r.print(&out, 4))
	require.Equal(t, "sensor 4: event: reading 3 is 65535\nsensor 4: log of 8 bytes has these 1 events and no other\n", out.String())
}

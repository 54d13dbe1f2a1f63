package kdev

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

func parseText(t *testing.T, address string) (location, error) {
	t.Helper()
	a, err := bridge.ParseAddress(address)
	require.NoError(t, err)
	return parse(a)
}

func TestParse(t *testing.T) {
	for address, want := range map[string]location{
		"dev:0":                 {node: "/dev/nfcomms0"},
		"dev:17":                {node: "/dev/nfcomms17"},
		"dev:/dev/nfcomms/by/x": {node: "/dev/nfcomms/by/x"},
		"dev:0?channels=100&managers=4&islands=2&slots=16&window=1&emem=6GiB&target-timeout=50ms": {
			node: "/dev/nfcomms0", reset: true, shape: uapi.Reset{
				Channels: 100, Mailboxes: 4, Islands: 2, Slots: 16, Window: 1, EMEM: 6 << 30, TimeoutMS: 50},
		},
		"dev:0?busy-poll=20us":            {node: "/dev/nfcomms0", busy: 20 * time.Microsecond},
		"dev:0?busy-poll=10ms&managers=4": {node: "/dev/nfcomms0", busy: 10 * time.Millisecond, reset: true, shape: uapi.Reset{Mailboxes: 4}},
		"dev:0?target-timeout=1us":        {node: "/dev/nfcomms0", reset: true, shape: uapi.Reset{TimeoutMS: 1}},
	} {
		got, err := parseText(t, address)
		require.NoError(t, err, address)
		want.shape.Size = 72
		got.address = ""
		require.Equal(t, want, got, address)
	}
	got, err := parseText(t, "dev:0?target-timeout="+((1<<32-1)*time.Millisecond).String())
	require.NoError(t, err)
	require.Equal(t, uint32(1<<32-1), got.shape.TimeoutMS)
	require.Contains(t, got.address, "dev:0?target-timeout=")
}

func TestParseRefuses(t *testing.T) {
	for address, c := range map[string]struct {
		is   error
		says string
	}{
		"dev:":                       {bridge.ErrInvalid, `want a number as in "dev:0"`},
		"dev:-1":                     {bridge.ErrInvalid, "want a number"},
		"dev:nfcomms0":               {bridge.ErrInvalid, "want a number"},
		"dev:99999999":               {bridge.ErrInvalid, "want a number"},
		"dev:0?spin=1us":             {bridge.ErrOption, "is not one of managers"},
		"dev:0?managers=x":           {bridge.ErrInvalid, "want a count"},
		"dev:0?emem=x":               {bridge.ErrInvalid, "want a size"},
		"dev:0?target-timeout=-1s":   {bridge.ErrInvalid, "want a duration"},
		"dev:0?target-timeout=50d":   {bridge.ErrInvalid, "want a duration"},
		"dev:0?target-timeout=9000h": {bridge.ErrInvalid, "target-timeout=9000h: invalid argument: want a duration, 0s..1193h2m47.295s"},
		"dev:0?busy-poll=11ms":       {bridge.ErrInvalid, "want a duration, 0s..10ms"},
		"dev:0?managers=65":          {bridge.ErrInvalid, "managers=65: invalid argument: want a count, 1..64"},
		"dev:0?managers=0":           {bridge.ErrInvalid, "want a count, 1..64"},
	} {
		_, err := parseText(t, address)
		require.ErrorIs(t, err, c.is, address)
		require.ErrorContains(t, err, c.says, address)
	}
}

//go:build cgo

package firmware

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// agrees: the firmware takes the least and the most that an option allows, and
// nothing beside that, so that no value wraps or vanishes on its way.
func agrees[T int | uint64 | time.Duration](t *testing.T, list func(c *Config) []option[T], beyond ...T) {
	t.Helper()
	for i, o := range list(&Config{}) {
		check := func(v T) abi.Status {
			// With 16 managers all numbers of islands that are a power of two fit.
			c := Config{Managers: 16}
			*list(&c)[i].to = v
			return c.Check()
		}
		require.Equal(t, abi.OK, check(o.limits.Min), "%s=%v", o.name, o.limits.Min)
		require.Equal(t, abi.OK, check(o.limits.Max), "%s=%v", o.name, o.limits.Max)
		if o.name == "spin" || o.name == "target-timeout" {
			continue // any is one to the firmware
		}
		for _, v := range append(beyond, o.limits.Max+1) {
			require.Equal(t, abi.ErrInvalid, check(v), "%s=%v", o.name, v)
		}
	}
}

// TestLimitsAreTheFirmwares: what Parse allows and what the firmware takes is the same.
func TestLimitsAreTheFirmwares(t *testing.T) {
	agrees(t, (*Config).counts, -1, math.MaxUint32+1, math.MaxUint32+9, math.MaxInt)
	agrees(t, (*Config).sizes, 1, math.MaxUint64)
	agrees(t, (*Config).durations, -1, 500*time.Microsecond, 4294967297*time.Millisecond, math.MaxInt64)
	require.Equal(t, abi.ErrInvalid, Config{Stack: 4294983680}.Check())
	require.Equal(t, abi.ErrInvalid, Config{TargetTimeout: -1}.Check())
	require.Equal(t, abi.ErrInvalid, Config{Spin: -1}.Check())
}

// TestShapesThatDoNotFit: what options must be to each other, defaults included, is said
// with both of them; the firmware takes what fits, and nothing else.
func TestShapesThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ options, says string }{
		{"islands=3", "options managers=8, islands=3: invalid argument: want as many managers for each island"},
		{"managers=4&islands=8", "options managers=4, islands=8: "},
		{"managers=64&channels=16", "options managers=64, channels=16: invalid argument: want a channel for each manager"},
		{"microengines=1&contexts=7", "options microengines=1, contexts=7: invalid argument: want room for 8 processes on an island"},
		{"managers=4&islands=2&channels=300&microengines=1&contexts=8", ""},
	} {
		a, err := bridge.ParseAddress("sim:?" + c.options)
		require.NoError(t, err)
		var config Config
		err = config.Parse(a)
		if c.says == "" {
			require.NoError(t, err)
			require.Equal(t, abi.OK, config.Check())
			continue
		}
		require.ErrorIs(t, err, bridge.ErrInvalid)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, abi.ErrInvalid, config.Check())
	}
}

// TestPart: a host's part has room for the services beside what is asked for, and is within the shape.
func TestPart(t *testing.T) {
	c := Config{Channels: 1000, Managers: 32, Microengines: 4, Contexts: 4}
	for _, p := range []struct {
		channels, processes int
		want                Part
		ok                  bool
	}{
		{0, 0, Part{}, true},
		{1000, 1, Part{Channels: 1000, Processes: 9}, true},
		{32, 16, Part{Channels: 32, Processes: 16}, true},
		{31, 0, Part{Channels: 31}, false}, // a mailbox would have none
		{1001, 0, Part{Channels: 1001}, false},
	} {
		got, ok := c.Part(p.channels, p.processes)
		require.Equal(t, p.want, got)
		require.Equal(t, p.ok, ok)
	}
	_, ok := Config{Islands: -1}.Part(0, 0)
	require.False(t, ok)
}

package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBusyReason(t *testing.T) {
	const wall = 2 * time.Second
	for _, c := range []struct {
		name         string
		wall, others time.Duration
		cpus         int
		memcpy       []float64
		reason       string
	}{
		{"quiet", wall, time.Second, 2, []float64{100, 199}, ""},
		{"others computed", wall, time.Second + 1, 2, nil, ReasonBusy},
		{"too short to tell", time.Second, time.Hour, 2, nil, ""},
		{"the machine does not tell", wall, time.Hour, 0, nil, ""},
		{"counted less than was used", wall, -time.Second, 2, nil, ""},
		{"memcpy varied", wall, 0, 2, []float64{100, 201}, ReasonBusy},
		{"one round", wall, 0, 2, []float64{100}, ""},
	} {
		require.Equal(t, c.reason, busyReason(c.wall, c.others, c.cpus, c.memcpy), c.name)
	}
}

func TestMachineTimeGrows(t *testing.T) {
	before, cpus, known := machineTime()
	after, _, still := machineTime()
	require.Equal(t, known, still)
	require.Equal(t, known, cpus > 0)
	require.GreaterOrEqual(t, after, before)
	w := NewWatch(CPUTime())
	require.Empty(t, watch{Start: w.Start.Add(time.Hour)}.Busy(0, nil), "no time has passed")
}

func TestSizes(t *testing.T) {
	n, err := ParseSize("1.5MiB")
	require.NoError(t, err)
	require.Equal(t, 3<<19, n)
	for _, text := range []string{"", "0", "1025GiB", "x"} {
		_, err := ParseSize(text)
		require.ErrorAs(t, err, new(UsageError), text)
	}
}

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
		{"a jiffy of each processor", wall, time.Second + 2*jiffy, 2, nil, ""},
		{"others computed", wall, time.Second + 2*jiffy + 1, 2, nil, ReasonBusy},
		{"others computed for a moment", leastWatch, leastWatch/2 + 2*jiffy + 1, 2, nil, ReasonBusy},
		{"too short to tell", leastWatch - 1, time.Hour, 2, nil, ""},
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
	w := NewWatch(0)
	w.used -= time.Hour // what others used
	require.Equal(t, known, w.Busy(0, nil) != "", "a measurement of no time is watched for long enough")
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

package main

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
		{"others computed", wall, time.Second + 1, 2, nil, reasonBusy},
		{"too short to tell", time.Second, time.Hour, 2, nil, ""},
		{"the machine does not tell", wall, time.Hour, 0, nil, ""},
		{"counted less than was used", wall, -time.Second, 2, nil, ""},
		{"memcpy varied", wall, 0, 2, []float64{100, 201}, reasonBusy},
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
	w := newWatch(cpuTime())
	require.Empty(t, watch{start: w.start.Add(time.Hour)}.busy(0, nil), "no time has passed")
}

func TestDeviceLabel(t *testing.T) {
	require.Equal(t, "simulated device", deviceLabel("sim"))
	require.Equal(t, "simulated device", deviceLabel("shm"))
	require.Equal(t, "device", deviceLabel("dev"))
}

func TestSizes(t *testing.T) {
	n, err := parseSize("1.5MiB")
	require.NoError(t, err)
	require.Equal(t, 3<<19, n)
	for _, text := range []string{"", "0", "1025GiB", "x"} {
		_, err := parseSize(text)
		require.ErrorAs(t, err, new(usageError), text)
	}
}

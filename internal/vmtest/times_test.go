//go:build linux

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCosts(t *testing.T) {
	var out bytes.Buffer
	var c costs
	c.print(&out)
	require.Empty(t, out.String())
	c.add(cost{job: "release", wall: 60 * time.Second, boot: 5 * time.Second, machine: 50 * time.Second, devices: 1500 * time.Millisecond})
	c.add(cost{job: "iommu", wall: 9 * time.Second, boot: time.Second, machine: 8 * time.Second})
	c.print(&out)
	require.Equal(t, `seconds   boot   all  CPU machine  CPU devices
release    5.0  60.0         50.0          1.5
iommu      1.0   9.0          8.0          0.0
all jobs   6.0  69.0         58.0          1.5
`, out.String())
}

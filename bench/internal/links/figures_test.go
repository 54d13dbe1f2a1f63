package links

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/mesh"
)

// TestHopsOf: a figure of a hop is half of a round trip, at its own percentile.
func TestHopsOf(t *testing.T) {
	var trips []time.Duration
	for i := 10_001; i > 0; i-- {
		trips = append(trips, time.Duration(i)*time.Microsecond)
	}
	require.Equal(t, FabricHops{Hops: 3, P50Ns: 5001 * 500, P99Ns: 9901 * 500, P9999Ns: 10_000 * 500}, hopsOf(3, trips))
}

// TestRatesOf: rates are of what arrived between two counts, and waiting is of each forwarded packet.
func TestRatesOf(t *testing.T) {
	before := mesh.Totals{Came: 5, Bytes: 1000, Forwarded: 7, Blocked: 9 * time.Microsecond}
	after := mesh.Totals{Sent: 99, Came: 25, Bytes: 4_001_000, Forwarded: 17, Blocked: 29 * time.Microsecond}
	require.Equal(t, FabricSize{Size: 56, MBs: 2, PacketsPerSec: 10}, sizeOf(56, before, after, 2*time.Second))
	require.Equal(t, FabricAll{Packets: 20, Seconds: 2, MBs: 2, BlockedNs: 2000}, allOf(before, after, 2*time.Second))
	after.Forwarded = before.Forwarded
	require.Equal(t, 20_000.0, allOf(before, after, time.Second).BlockedNs, "no packet was forwarded")
}

package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// TestKindNotTold: the answers of a server that is older than kinds have none, and the output does
// not claim one.
func TestKindNotTold(t *testing.T) {
	p := newPinger()
	require.NoError(t, p.add(&nfcommsv1.PingDeviceResponse{}, time.Millisecond))
	waiting := channelOf(&nfcommsv1.Channel{H2D: &nfcommsv1.Half{Waiting: 1}})
	for command, r := range map[string]record{
		"ping":      p.record("nic0"),
		"latency":   latencyRecordOf("nic0", 1, &nfcommsv1.WatchLatencyResponse{}),
		"top":       compare(sample{}, moment(1), 9),
		"health":    healthRecord{Devices: []deviceHealthRecord{{}}},
		"info":      infoRecord{deviceRecord: deviceOf(&nfcommsv1.Device{})},
		"channels":  waitingOf(channelsRecord{Channels: []channelRecord{waiting}}),
		"link test": linkTestOf("nic0", "0.0.0", "x+", 0.9, &nfcommsv1.TestLinkResponse{}),
	} {
		var text bytes.Buffer
		r.table(&printer{w: &text})
		require.Contains(t, text.String(), "kind not told", command)
		keys, err := json.Marshal(r)
		require.NoError(t, err)
		require.Contains(t, string(keys), `"kind":""`, command)
	}
}

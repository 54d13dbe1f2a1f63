package prom

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/metrics"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// codes are the values of the label code of a metric.
func codes(t *testing.T, name string, dev *nfcomms.Device) map[string]bool {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics.NewCollector(metrics.One("sim0", dev), metrics.Options{}))
	all, err := reg.Gather()
	require.NoError(t, err)
	found := map[string]bool{}
	for _, family := range all {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.Metric {
			for _, l := range m.Label {
				if l.GetName() == "code" {
					found[l.GetValue()] = true
				}
			}
		}
	}
	return found
}

// TestCodesAreReasons: a metric calls an error what the control plane does, in
// lower case, for every status that a call may end with.
func TestCodesAreReasons(t *testing.T) {
	want := map[string]bool{"other": true} // of the application
	for s := abi.OK + 1; s < abi.StatusCount; s++ {
		reason := control.Reason(bridge.Error(s))
		require.NotEmpty(t, reason, s)
		want[strings.ToLower(reason)] = true
	}
	require.Len(t, want, int(abi.StatusCount))
	require.Equal(t, want, codes(t, "nfcomms_errors_total", open(t)))
	require.Equal(t, map[string]bool{strings.ToLower(control.Reason(control.ErrNotOpen)): true},
		codes(t, "nfcomms_device_failure", nil))
}

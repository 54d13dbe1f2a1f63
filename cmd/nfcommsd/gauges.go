package main

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// reloads is the outcome of the last reload.
type reloads struct {
	good atomic.Bool
	last atomic.Int64 // the last good one, in seconds since 1970
}

// succeeded notes a good reload, or the start.
func (r *reloads) succeeded() {
	r.last.Store(time.Now().Unix())
	r.good.Store(true)
}

var (
	reloadGood = prometheus.NewDesc("nfcommsd_config_last_reload_successful",
		"1 if the last reload of the configuration and the certificates succeeded, or there was none; 0 if the old ones stay in force.", nil, nil)
	reloadTime = prometheus.NewDesc("nfcommsd_config_last_reload_success_timestamp_seconds",
		"Time of the last reload that succeeded, or of the start, since the Unix epoch.", nil, nil)
	deviceState = prometheus.NewDesc("nfcommsd_device_state",
		"1 for the state of the device in the control plane, which knows of drains, 0 for the others.", []string{"device", "state"}, nil)
	certificateEnd = prometheus.NewDesc("nfcommsd_certificate_expiry_timestamp_seconds",
		"Time at which the first certificate of a file expires, since the Unix epoch, by the setting that names the file.", []string{"setting"}, nil)
)

// usedCalls shows of the calls what somebody reads: for each method how many there were, and which
// ended with which code in what time, once there was one. Of all methods with all codes and times
// almost all are zero for ever.
type usedCalls struct{ calls *grpcprom.ServerMetrics }

// Describe sends what Collect may send.
func (u usedCalls) Describe(ch chan<- *prometheus.Desc) { u.calls.Describe(ch) }

// Collect reads the calls.
func (u usedCalls) Collect(ch chan<- prometheus.Metric) {
	all := make(chan prometheus.Metric)
	go func() {
		defer close(all)
		u.calls.Collect(all)
	}()
	for m := range all {
		if isUsed(m) {
			ch <- m
		}
	}
}

// isUsed is true for what is not zero, and for the good calls of each method, of which rates are
// asked from the first on.
func isUsed(m prometheus.Metric) bool {
	var value dto.Metric
	if m.Write(&value) != nil {
		return true // the registry reports why
	}
	if h := value.GetHistogram(); h != nil {
		return h.GetSampleCount() > 0
	}
	good := slices.ContainsFunc(value.GetLabel(), func(l *dto.LabelPair) bool {
		return l.GetName() == "grpc_code" && l.GetValue() == codes.OK.String()
	})
	return good || value.GetCounter().GetValue() > 0
}

// gauges is what the daemon shows of itself.
type gauges struct{ d *daemon }

// Describe sends what Collect may send.
func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{reloadGood, reloadTime, deviceState, certificateEnd} {
		ch <- desc
	}
}

// Collect reads the daemon.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	show := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	show(reloadGood, oneIf(g.d.reloads.good.Load()))
	show(reloadTime, float64(g.d.reloads.last.Load()))
	for name, state := range g.d.control.States() {
		for value := nfcommsv1.Device_STATE_UNSPECIFIED + 1; nfcommsv1.Device_State_name[int32(value)] != ""; value++ {
			show(deviceState, oneIf(value == state), name, stateWord(value))
		}
	}
	if g.d.tls != nil {
		certificate, clientCA := g.d.tls.Expiry()
		show(certificateEnd, float64(certificate.Unix()), "tcp.certificate")
		show(certificateEnd, float64(clientCA.Unix()), "tcp.client_ca")
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// stateWord is a state in the words of nfctl.
func stateWord(s nfcommsv1.Device_State) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))
}

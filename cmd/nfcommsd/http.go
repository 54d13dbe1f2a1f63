package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/exporter-toolkit/web"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/metrics"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// newRegistry returns what /metrics shows.
func (d *daemon) newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
		usedCalls{d.calls}, d.refused.count, gauges{d},
		metrics.NewCollector(d.devices, metrics.Options{
			Channels: d.conf.HTTP.Channels, Trace: d.conf.HTTP.Trace, MaxSeries: d.conf.HTTP.MaxSeries,
		}),
		metrics.NewFabricCollector(d.devices),
	)
	return r
}

// devices yields every device for the collector: nil for one that is not open.
func (d *daemon) devices() iter.Seq2[string, *nfcomms.Device] {
	return func(yield func(string, *nfcomms.Device) bool) {
		open := make(map[string]*nfcomms.Device)
		for name, dev := range d.control.Devices() {
			open[name] = dev
		}
		for name := range d.control.States() {
			if !yield(name, open[name]) {
				return
			}
		}
	}
}

// webHandler returns what is served over HTTP.
func (d *daemon) webHandler() http.Handler {
	return metrics.Handler(metrics.HandlerOptions{
		Gatherer: d.newRegistry(), Live: d.live, Ready: d.ready, Pprof: d.conf.HTTP.Pprof, Logger: d.log,
	})
}

// answerTime is the time for an answer over HTTP, beside that of a profile: three
// times what a scrape may take.
const answerTime = 30 * time.Second

// newWeb returns an HTTP server. Each listener has its own: the exporter toolkit
// changes the server it is given.
func (d *daemon) newWeb(handler http.Handler) *http.Server {
	// Over HTTP/2 one connection has hundreds of requests, and memory for each. A scraper needs one.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Server{
		Protocols:         &protocols,
		Handler:           handler,
		ReadHeaderTimeout: d.conf.Limits.Handshake,
		ReadTimeout:       d.conf.Limits.Handshake,
		WriteTimeout:      answerTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaders,
		ConnState:         d.settleWeb,
		ConnContext:       withConn,
		ErrorLog:          plainLog(d.log),
	}
}

// webFlags gives the exporter toolkit TLS and users.
func (d *daemon) webFlags() *web.FlagConfig {
	return &web.FlagConfig{WebConfigFile: &d.conf.HTTP.WebConfig}
}

// live answers /healthz.
func (d *daemon) live(ctx context.Context) error {
	if !d.liveness.check(ctx, d.control) {
		return errors.New("no device answers that did before")
	}
	return nil
}

// ready answers /readyz: nil if health v1 says SERVING, else which devices do
// not serve.
func (d *daemon) ready(ctx context.Context) error {
	answer, err := d.control.Health().Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
		return nil
	}
	var down []string
	for name, state := range d.control.States() {
		if !slices.Contains([]nfcommsv1.Device_State{nfcommsv1.Device_STATE_READY, nfcommsv1.Device_STATE_DEGRADED}, state) {
			down = append(down, fmt.Sprintf("%s %v", name, state))
		}
	}
	return fmt.Errorf("not serving: %s", strings.Join(down, ", "))
}

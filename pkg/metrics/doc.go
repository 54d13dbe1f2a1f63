// Package metrics shows devices to Prometheus.
//
// A Collector reads Stats snapshots when it is scraped: nothing runs between
// scrapes, no message takes a lock for it, and nothing is registered globally.
//
//	reg := prometheus.NewRegistry()
//	reg.MustRegister(metrics.NewCollector(metrics.One("sim0", dev), metrics.Options{}))
//	http.Handle("/", metrics.Handler(metrics.HandlerOptions{Gatherer: reg}))
//
// The number of series is bounded whatever the devices are called and however
// many channels are open; docs/metrics.md lists every metric.
package metrics

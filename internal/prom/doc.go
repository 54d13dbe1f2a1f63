// Package prom runs a real Prometheus for tests and demonstrations: it finds the
// programs that scripts/prometheus.sh provides, starts a server on a port of its
// own and asks it.
package prom

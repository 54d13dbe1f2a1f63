// Package driver gives the devices of nfcommsd to claims of Kubernetes: it publishes them in slices,
// prepares those that the scheduler picked for a claim, and reports their health.
package driver

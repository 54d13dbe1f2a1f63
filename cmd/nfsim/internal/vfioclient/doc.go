// Package vfioclient is the client side of vfio-user, for tests: it asks as
// QEMU asks, and lets a test ask worse.
package vfioclient

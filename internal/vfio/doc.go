// Package vfio is the back end that drives the device as a PCI function from this process, without
// a kernel module: address "vfio-user:PATH", where PATH is the socket of a process that serves the
// function, such as "nfsim --vfio-user". docs/device-spec.md describes the function, and
// docs/kernel-module.md says when to use the module in its place.
//
//	stall-timeout=10s   how long a transfer may stand still; from 1ms
//
// One process has the function at a time; it is reset when it is opened and closed. The device reaches
// memory of Alloc where it lies, and nothing else: other buffers are copied through memory of that
// kind.
package vfio

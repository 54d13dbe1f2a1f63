// Package vfio is the back end that drives the device as a PCI function from this process, without
// the kernel module. Address "vfio:0000:01:00.0" is a function that the kernel's VFIO gives to this
// process: it is bound to vfio-pci, behind an IOMMU. Address "vfio-user:PATH" names the socket of a
// process that serves one, such as "nfsim --vfio-user". docs/device-spec.md describes the function, and
// docs/kernel-module.md says when to use the module in its place.
//
//	stall-timeout=10s   how long a transfer may stand still; from 1ms
//
// and the shape of the device: managers, islands, channels, slots, window, emem, target-timeout.
//
// One process has the function at a time; it is reset when it is opened and closed. The device reaches
// memory of Alloc where it lies, and nothing else: other buffers are copied through memory of that
// kind.
package vfio

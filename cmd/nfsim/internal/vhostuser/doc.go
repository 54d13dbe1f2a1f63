// Package vhostuser is the server side of vhost-user as User-Mode Linux speaks
// it for PCI devices: a virtio device with two queues, one for accesses to config
// space and BARs, one for interrupts (linux/virtio_pcidev.h).
//
// It serves what vfiouser serves, and stands in for what a virtual machine
// monitor does there: it keeps the MSI-X table, turns the device's eventfds into
// messages of the interrupt queue, and heeds the memory enable bit. Guest memory
// is the device's bus: a bus address is a guest physical address.
//
// Nothing the client sends is trusted: a message, descriptor or operation that
// makes no sense ends the connection with ErrMalformed.
package vhostuser

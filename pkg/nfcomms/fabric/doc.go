// Package fabric reaches the fabric that a device is a node of: devices and targets of other nodes,
// the state of nodes and links, and windows of memory that others put to and get from.
// docs/fabric.md describes fabrics.
package fabric

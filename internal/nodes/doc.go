// Package nodes joins a device that is a node of a fabric with the devices of the other
// nodes: they are opened when they are first asked for, and channels find them by the node
// of their target.
package nodes

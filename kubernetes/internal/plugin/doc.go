// Package plugin is the device plugin of a node: it offers the devices of nfcommsd to the kubelet.
//
// It has no state of its own. The daemon's watch says which devices there are and how they are, the
// kubelet counts which are taken, and what a container needs follows from the name of its device.
package plugin

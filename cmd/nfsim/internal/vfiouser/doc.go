// Package vfiouser is the server side of the vfio-user protocol: a PCI device
// in this process, attached to a virtual machine monitor over a UNIX socket.
//
// The package knows the protocol and nothing of the device behind it. Every
// message is checked in full; a malformed one is answered with an error, and one
// without a clear end ends the connection. Every descriptor that
// arrives is closed once its message was handled: a Device that keeps one
// duplicates it.
package vfiouser

// Command nfsim is the device in a process of its own.
//
//	nfsim --vfio-user SOCKET
//
// makes it a PCI device (docs/device-spec.md) that a virtual machine monitor
// attaches through a vfio-user socket: QEMU 10.1 or later with
//
//	-device '{"driver":"vfio-user-pci","socket":{"path":"SOCKET","type":"unix"}}'
//
// and guest memory that can be shared (memory-backend-memfd). The socket is
// there before nfsim prints "listening", and removed when it exits.
//
//	nfsim --node 1.0.0 --torus 2x2x1 …
//
// makes it a node of a fabric (docs/fabric.md) whose neighbours are other processes.
//
//	nfsim --shm SOCKET
//
// makes it a device that processes share (docs/shm.md): they open it as shm:SOCKET.
//
// With --script it breaks the rules on purpose, for tests of drivers.
//
// Exit codes: 0 ended as asked, 1 failed, 2 bad input, 3 died as the script said.
package main

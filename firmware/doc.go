// Package firmware holds the device firmware in C, and in Go the headers that a device program
// includes.
//
// The C sources are in rooms: core compiles freestanding and calls nothing but its port; link joins
// the nodes of a fabric and is as free. The room port runs both on threads of a process, and
// programs has the device programs of this tree. The headers that others include are beside the Go
// files.
package firmware

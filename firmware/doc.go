// Package firmware is the device firmware in C and the small cgo package that
// runs it on threads of this process (the hosted port).
//
// The C sources lie in rooms: core compiles freestanding and calls nothing but
// its port, link has what lies between nodes of a fabric and is as free, port is
// what hosts them here, programs are the device programs of this tree. The headers
// that others include lie beside the Go files. cgo compiles only files of the
// package's own directory, so each room has one file here that includes its
// sources; see docs/design/0001-firmware-rooms.md.
package firmware

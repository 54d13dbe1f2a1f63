// Package firmware is the device firmware in C and the small cgo package that
// runs it on threads of this process (the hosted port).
//
// The C sources lie flat in this directory, because cgo tracks only files of
// the package's own directory: nfc_*.c is the core, which compiles freestanding;
// program_*.c are the device programs of this tree; port_*.c is the hosted port.
package firmware

// Package firmware compiles the device firmware and runs it on threads of this process (the hosted
// port). The C sources are in the folder firmware at the top of the tree, in rooms; each room has
// one file here that includes its sources, as cgo compiles only files of the package's own folder.
// See docs/design/0001-firmware-rooms.md.
package firmware

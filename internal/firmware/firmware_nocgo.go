//go:build !cgo

package firmware

// Available reports whether this build contains the firmware.
const Available = false

// Bus is a device's side of a bus; this build has none.
type Bus struct{}

//go:build !cgo

package firmware

// Available reports whether this build contains the firmware.
const Available = false

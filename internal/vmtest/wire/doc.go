// Package wire is what the host and the guest of a virtual machine test say to
// each other: the plan, a file in the guest's initramfs, and frames, lines of
// JSON over a serial port.
package wire

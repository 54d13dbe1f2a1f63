// Package vm boots one virtual machine for a test: it writes the initramfs,
// extracts the kernel, starts the device's process and QEMU, passes on what the
// guest says, and ends every process that it started.
//
// QEMU emulates the processor (TCG); neither KVM nor root is needed.
package vm

// Package slottrace verifies the slots of a device of the kernel module, which its tracepoints show:
// tracefs writes them as text. docs/kernel-module.md has the events, package spec verifies the slots.
package slottrace

// Package scripted is a device in Go: it follows docs/protocol.md and runs the
// programs of the conformance suite, and its hooks make it break one rule at a
// time. The host is tested against it, and nfsim --script runs it on a bus.
package scripted

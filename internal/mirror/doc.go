// Package mirror compares a C header with the Go package that mirrors it: the
// C side is what a compiler's debug information says, the Go side what the Go
// type checker says, so neither is a list kept by hand. Tests of bridge/abi and
// internal/kdev/uapi use it.
package mirror

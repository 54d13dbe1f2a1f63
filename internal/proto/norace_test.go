//go:build cgo && !race

package proto_test

const walkDefault = walkWhole

//go:build race

package proto_test

// walkDefault is small: the race detector finds nothing in walks, which have no goroutines.
const walkDefault = 50_000

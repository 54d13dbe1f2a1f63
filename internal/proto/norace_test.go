//go:build !race

package proto_test

const walkDefault = walkWhole

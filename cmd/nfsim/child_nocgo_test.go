//go:build !cgo

package main

// childEnv asks for a child, which this build has not.
const childEnv = "NFSIM_TEST_CHILD"

func child(string) int { return exitFailed }

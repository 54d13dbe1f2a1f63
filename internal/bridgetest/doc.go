// Package bridgetest holds what every back end is tested with.
//
// Run is the conformance suite: the rules a device keeps, one subtest each,
// written against package bridge alone. Others import it as bridge/bridgetest. Soak and Chaos run for longer.
// LeakCheck fails a test that leaves goroutines, file descriptors, mappings or
// threads behind.
package bridgetest

// Package bridgetest holds what every back end is tested with.
//
// Run is the conformance suite: the rules a device keeps, one subtest each,
// written against package bridge alone. Script is a device in Go that follows
// the protocol and whose hooks make it break one rule at a time; the host
// mailbox manager is tested against it. LeakCheck fails a test that leaves
// goroutines, file descriptors, mappings or threads behind.
package bridgetest

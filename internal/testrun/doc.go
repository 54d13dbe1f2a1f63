// Command testrun runs the project's test suites, one after the other or in
// lanes, prints one line for each package or step while they run and the whole
// output of whatever fails. It ends with tables of what took longest, the lines
// that name what failed, and the line "N passed, N failed, N skipped".
//
//	testrun [-skips FILE] [-proofs DOCUMENT] [-lanes N] "KIND NAME: COMMAND" …
//
// KIND is how a suite is counted: "go" reads the stream of go test -json,
// "sum" adds up the lines "N passed, N failed, N skipped" that the command
// prints, and "step" counts the exit status of the command as one test.
//
// A skipped test counts as a failure unless FILE allows it: one line for each,
// "PACKAGE TEST REASON", where TEST may end in "*".
//
// Every rule of DOCUMENT (docs/semantics.md) is one test more: it passes if the
// tests that the document names for it ran and passed, each in every package
// that must run it.
package main

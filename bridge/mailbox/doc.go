// Package mailbox is the Go host mailbox manager: it implements the bridge
// contract over a mailbox area that is plain shared memory.
//
// Goroutines write slots and read slots themselves; there is no system call, no cgo call and no
// allocation on the way of a message. A caller that waits polls the mailbox for all callers,
// briefly, and then parks on a Go channel; a dispatcher goroutine serves the device's doorbell for
// the parked.
package mailbox

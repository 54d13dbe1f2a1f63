// Package proto is the host's side of the protocol between host and device, pure: it takes
// no lock, reads no clock and touches nobody's memory. One table ([Rows]) holds every
// transition of a half of a channel; [Table.Classify] reads it for a message of the device and
// [Table.Act] for what the host does. The ledger of a transfer ([Ledger]), the cut of a buffer
// into page entries ([Split]) and the layout of the mailbox area ([Layout]) are here too.
//
// The kernel module's core (kmod/core) is the same machine in C, and its names follow from those
// here: [StateOffered] is NFCM_STATE_OFFERED, [EventDelivered] is NFCM_EVENT_DELIVERED. The
// conversations in testdata (package talk) hold all implementations together.
package proto

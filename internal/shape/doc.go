// Package shape reads the options of an address that shape a card's next epoch: how many channels,
// mailboxes and islands it has, and how large they are. docs/device-spec.md describes the registers.
package shape

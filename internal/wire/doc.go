// Package wire mirrors the part of firmware/nfc_abi.h that only the mailbox manager and a device
// exchange: the mailbox area, the 64-byte slot and every payload that travels in one. Values that
// the contract of package bridge shows as well are in bridge/abi.
//
// The two mirrors are written by hand and held to the header by a test that compares every size,
// offset and constant both ways. All words are little-endian, and so are the machines this package
// compiles for.
package wire

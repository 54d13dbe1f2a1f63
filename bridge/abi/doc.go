// Package abi is the Go mirror of firmware/nfc_abi.h: the mailbox area, the
// 64-byte slot and every payload that travels in one.
//
// The mirror is written by hand and held to the header by a test that compares
// every size, offset and constant both ways. All words are little-endian, and
// so are the machines this package compiles for.
package abi

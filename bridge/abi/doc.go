// Package abi mirrors the values of firmware/nfc_abi.h that the contract of package bridge shows:
// statuses, ids of nodes and targets, the diagnostic word, memory types and limits.
//
// A test of internal/wire, which has the rest of the header, compares them both ways.
package abi

// Package bridge is the contract between the public API and a back end that reaches a device. It
// has the interfaces of devices and channels, their promises, the errors, and the registry of
// address schemes.
//
// Applications use package nfcomms, which wraps this contract. Back ends
// implement it, register a scheme and pass the suite in bridge/bridgetest.
package bridge

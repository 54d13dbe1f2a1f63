// Package bridge is the contract between the public API and a back end that
// reaches a device: what a device and a channel can do, what they promise, the
// errors they return, and the registry of address schemes.
//
// Applications use package nfcomms, which wraps this contract. Back ends
// implement it, register a scheme and pass the suite in bridge/bridgetest.
package bridge

// Package umod answers the ioctls of the kernel module in this process, over any device of
// the bridge, by the letter of kmod/uapi/nfcomms.h: what the module refuses, it refuses. It
// serves libnfcomms where no module is, and package kdev's tests, which hold it to the whole
// conformance suite.
package umod

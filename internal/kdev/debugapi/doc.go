// Package debugapi is the Go mirror of kmod/uapi/nfcomms_debug.h, the ioctls of
// /dev/nfcomms_registersN for administrators. Its test holds it to the header; what the fields mean
// is said there.
package debugapi

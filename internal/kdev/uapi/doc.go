// Package uapi is the Go mirror of kmod/uapi/nfcomms.h, the ioctl interface of
// /dev/nfcommsN. Its tests hold every structure, constant and ioctl number to
// the header; what the fields mean is said there.
package uapi

// Package hosts serves a device to processes that share memory with it: each client of
// a UNIX socket is a host of its own (docs/shm.md). It believes nothing a client sends.
package hosts

// Package shm is the back end of devices that run in another process and share memory
// with this one, as "nfsim --shm" does: address "shm:PATH", where PATH is the UNIX socket
// of that process. docs/shm.md describes the wire.
//
//	user=NAME           who may run the device beside this user and root: a name or number
//	stall-timeout=10s   how long a transfer may stand still; from 1ms
//
// The device reaches memory of Alloc where it lies. Other buffers are copied through memory
// of that kind; so is what Register was given.
package shm

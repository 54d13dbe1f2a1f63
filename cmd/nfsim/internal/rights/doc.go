// Package rights reads from a UNIX socket together with the descriptors that
// come with the bytes, and loses none: what nobody takes is closed.
package rights

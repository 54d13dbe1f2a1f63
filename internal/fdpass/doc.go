// Package fdpass passes descriptors over UNIX sockets, and says who is at the
// other end. It loses no descriptor: what nobody takes is closed, also where the
// other side sends more than it may.
package fdpass

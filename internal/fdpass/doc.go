// Package fdpass passes descriptors over UNIX sockets, and identifies the peer. It leaks no
// descriptor: one that no caller takes is closed, also where the other side sends more than it may.
package fdpass

// Package listen makes the listeners of nfcommsd: its UNIX socket with all that
// can be wrong about the path, the sockets that systemd hands over, and a bound
// on the connections of each.
package listen

//go:build !linux

package udp

import "net"

// merge returns the socket: only Linux hands over datagrams together.
func merge(socket net.PacketConn) net.PacketConn { return socket }

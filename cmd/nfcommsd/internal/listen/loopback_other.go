//go:build !linux

package listen

import (
	"errors"
	"net"
)

// LoopbackUser needs Linux.
func LoopbackUser(*net.TCPConn) (uid uint32, err error) { return 0, errors.ErrUnsupported }

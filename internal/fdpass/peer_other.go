//go:build !linux

package fdpass

import (
	"errors"
	"syscall"
)

// PeerOf needs Linux.
func PeerOf(syscall.Conn) (Peer, error) { return Peer{}, errors.ErrUnsupported }

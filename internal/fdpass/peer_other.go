//go:build !linux

package fdpass

import (
	"errors"
	"os"
	"syscall"
)

// PeerOf needs Linux.
func PeerOf(syscall.Conn) (Peer, error) { return Peer{}, errors.ErrUnsupported }

// ProcessOf needs Linux.
func ProcessOf(syscall.Conn) (*os.File, error) { return nil, errors.ErrUnsupported }

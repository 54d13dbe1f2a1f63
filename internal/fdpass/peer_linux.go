package fdpass

import (
	"errors"
	"syscall"
)

// PeerOf returns who is at the other end, as the kernel noted at connect.
func PeerOf(c syscall.Conn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var p Peer
	var asked error
	err = raw.Control(func(fd uintptr) {
		var cred *syscall.Ucred
		if cred, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); asked == nil {
			p = Peer{cred.Pid, cred.Uid, cred.Gid}
		}
	})
	return p, errors.Join(err, asked)
}

package fdpass

import (
	"errors"
	"fmt"
	"os"
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

// Of asm-generic/socket.h, since Linux 6.5, and of fcntl.h for the file of a process.
const (
	peerPidFD   = 77
	pidFDOpenNR = 434
)

// ProcessOf returns a file that becomes readable when the process at the other end ends. It is the
// process that connected, even if another process has its number now; the caller closes it. A
// kernel before 6.5 looks the number up, and knows none of a process in another namespace.
func ProcessOf(c syscall.Conn) (*os.File, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, asked := 0, error(nil)
	err = raw.Control(func(s uintptr) { fd, asked = syscall.GetsockoptInt(int(s), syscall.SOL_SOCKET, peerPidFD) })
	if errors.Is(asked, syscall.ENOPROTOOPT) {
		fd, asked = openProcess(c)
	}
	if err = errors.Join(err, asked); err != nil {
		return nil, fmt.Errorf("descriptor of the peer's process: %w", err)
	}
	syscall.CloseOnExec(fd)
	_ = syscall.SetNonblock(fd, true) // it waits in the runtime's poller
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// openProcess looks the process at the other end up by its number.
func openProcess(c syscall.Conn) (int, error) {
	peer, err := PeerOf(c)
	if err != nil {
		return -1, err
	}
	fd, _, errno := syscall.Syscall(pidFDOpenNR, uintptr(peer.PID), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

package access

import (
	"errors"
	"sync"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/owners"
)

// soPeerGroups is SO_PEERGROUPS, which package syscall lacks.
const soPeerGroups = 59

// maxGroups is the kernel's NGROUPS_MAX.
const maxGroups = 1 << 16

// peerOf reads the credentials that the kernel noted at connect.
func peerOf(c syscall.Conn) (Local, error) {
	peer, err := fdpass.PeerOf(c)
	if err != nil {
		return Local{}, err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Local{}, err
	}
	who := Local{PID: peer.PID, UID: peer.UID, GID: peer.GID, group: sync.OnceValue(func() string { return owners.GroupOf(peer.PID) })}
	var asked error
	err = raw.Control(func(fd uintptr) { who.Groups, asked = groupsOf(fd) })
	if err = errors.Join(err, asked); err != nil {
		return Local{}, err
	}
	return who, nil
}

// groupsOf reads the supplementary groups of the peer. The kernel reports how many
// there are when the room does not suffice.
func groupsOf(fd uintptr) ([]uint32, error) {
	groups := make([]uint32, 32)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_SOCKET, soPeerGroups,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno == syscall.ENODATA: // a peer from before its process was known
			return nil, nil
		case errno != syscall.ERANGE || size/4 > maxGroups || int(size/4) <= len(groups):
			return nil, errno
		}
		groups = make([]uint32, size/4)
	}
}

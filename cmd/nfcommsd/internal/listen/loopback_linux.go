package listen

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Of linux/inet_diag.h and linux/sock_diag.h, which package syscall lacks.
const (
	sockDiagByFamily = 20
	diagRequestSize  = syscall.NLMSG_HDRLEN + 56 // with an inet_diag_req_v2
	diagAnswerSize   = syscall.NLMSG_HDRLEN + 72 // with an inet_diag_msg
	diagUID          = syscall.NLMSG_HDRLEN + 64 // idiag_uid
	diagInode        = syscall.NLMSG_HDRLEN + 68 // idiag_inode; 0: no process has the socket any more
)

// errNoPeer: no process of this machine has the other end.
var errNoPeer = errors.New("no process has the other end")

// LoopbackUser returns the user who made the other end of a connection over the
// loopback interface, in the user namespace of this process.
func LoopbackUser(conn *net.TCPConn) (uid uint32, err error) {
	here, there := addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
	if !there.Addr().IsLoopback() {
		return 0, errNoPeer
	}
	s, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, syscall.NETLINK_INET_DIAG)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer syscall.Close(s)
	// The answer is in the socket before the request returns.
	if err := syscall.Sendto(s, diagRequest(there, here), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return 0, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 1024)
	n, _, err := syscall.Recvfrom(s, answer, syscall.MSG_DONTWAIT)
	if err != nil {
		return 0, os.NewSyscallError("recvfrom", err)
	}
	e := binary.NativeEndian
	if n < diagAnswerSize || e.Uint16(answer[4:]) != sockDiagByFamily || e.Uint32(answer[diagInode:]) == 0 {
		return 0, errNoPeer
	}
	return e.Uint32(answer[diagUID:]), nil
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// diagRequest asks for the TCP socket that has these addresses.
func diagRequest(own, peer netip.AddrPort) []byte {
	b := make([]byte, diagRequestSize)
	e := binary.NativeEndian
	e.PutUint32(b[0:], uint32(len(b)))
	e.PutUint16(b[4:], sockDiagByFamily)
	e.PutUint16(b[6:], syscall.NLM_F_REQUEST)
	r := b[syscall.NLMSG_HDRLEN:]
	r[0], r[1] = syscall.AF_INET, syscall.IPPROTO_TCP
	if own.Addr().Is6() {
		r[0] = syscall.AF_INET6
	}
	e.PutUint32(r[4:], ^uint32(0)) // any state
	id := r[8:]
	binary.BigEndian.PutUint16(id[0:], own.Port())
	binary.BigEndian.PutUint16(id[2:], peer.Port())
	copy(id[4:20], own.Addr().AsSlice())
	copy(id[20:36], peer.Addr().AsSlice())
	e.PutUint32(id[40:], ^uint32(0)) // no cookie
	e.PutUint32(id[44:], ^uint32(0))
	return b
}

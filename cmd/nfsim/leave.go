//go:build cgo

package main

import "golang.org/x/sys/unix"

// leaveMS bounds the wait for a client to notice that the device is leaving.
const leaveMS = 10000

// leave hangs up before the process ends: it ends the sending half of the
// client's socket, and waits until the client has closed its own. QEMU 11.1 takes
// the end of a device in its stride when it reads it, but fails an assertion of
// its own when it writes to a socket that nobody reads any more: on a loaded
// machine that is often the first notice of it.
func (s *server) leave() {
	socket := s.socket.Load()
	if socket == nil {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return // it is closed already
	}
	kept := -1 // stays open when the serving goroutine closes the socket
	_ = raw.Control(func(fd uintptr) { kept, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if kept < 0 {
		return
	}
	defer unix.Close(kept)
	if unix.Shutdown(kept, unix.SHUT_WR) != nil {
		return
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(kept), Events: unix.POLLRDHUP}}, leaveMS) // after it the process ends anyhow
}

//go:build linux

package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a process and the creator of a ring say to each other over an abstract
// UNIX socket: one request, and one or two answers, of fixed size. A connection
// that holds a role stays open as long as the role is held.

// role is a side of the ring; wants also names the request that takes none.
type role uint32

const (
	roleWriter role = iota
	roleReader
	wantMemory // hands out the descriptors
)

func (r role) other() role { return roleReader - r }

func (r role) String() string {
	if r == roleWriter {
		return "writer"
	}
	return "reader"
}

// Answers.
const (
	answerOK     = iota // with descriptors for wantMemory
	answerBusy          // the role is taken
	answerWait          // the role is free once the other side has left; OK follows
	answerDenied        // the ring belongs to another user
)

const (
	requestSize = 16 // magic, version, role
	answerSize  = 16 // magic, version, answer
	nameMax     = 64
)

func checkName(name string) error {
	if name == "" || len(name) > nameMax {
		return fmt.Errorf("%w: a name has 1 to %d bytes", ErrConfig, nameMax)
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c == '/' || c == '@' || c > '~' {
			return fmt.Errorf("%w: a name has no %q", ErrConfig, c)
		}
	}
	return nil
}

// socketName is the abstract address of a ring. It carries the user, so that
// users do not take names from each other by accident.
func socketName(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: "@nfcomms/ring/" + strconv.Itoa(os.Getuid()) + "/" + name, Net: "unixpacket"}
}

func message(word uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, magic)
	b = binary.LittleEndian.AppendUint32(b, version)
	return binary.LittleEndian.AppendUint32(b, word)
}

// parse returns the last word of a request or an answer.
func parse(b []byte) (uint32, error) {
	if len(b) != requestSize || binary.LittleEndian.Uint64(b) != magic {
		return 0, fmt.Errorf("%w: %d bytes that are no message of a ring", ErrPeer, len(b))
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return 0, fmt.Errorf("%w: it speaks version %d, this is %d", ErrVersion, v, version)
	}
	return binary.LittleEndian.Uint32(b[12:]), nil
}

// peer returns who is at the other end, by the kernel's word.
func peer(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, credErr)
}

// trusted refuses the peer of another user.
func trusted(c *net.UnixConn) error {
	cred, err := peer(c)
	if err != nil {
		return fmt.Errorf("ask who the peer is: %w", err)
	}
	if int(cred.Uid) != os.Getuid() {
		return fmt.Errorf("%w: %s", ErrPermission, userName(cred.Uid))
	}
	return nil
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}

// receiveFiles reads one message with exactly n descriptors, or none with an
// answer other than OK.
func receiveFiles(c *net.UnixConn, n int) (answer uint32, files []*os.File, err error) {
	b, oob := make([]byte, answerSize+1), make([]byte, unix.CmsgSpace(4*16))
	got, oobn, _, _, err := c.ReadMsgUnix(b, oob)
	if err != nil {
		return 0, nil, err
	}
	files, err = filesOf(oob[:oobn])
	if err == nil {
		answer, err = parse(b[:got])
	}
	if err == nil && answer == answerOK && len(files) != n {
		err = fmt.Errorf("%w: %d descriptors in place of %d", ErrPeer, len(files), n)
	}
	if err != nil {
		closeAll(files)
		return 0, nil, err
	}
	return answer, files, nil
}

// filesOf takes the descriptors out of a control message.
func filesOf(oob []byte) ([]*os.File, error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("%w: control message: %w", ErrPeer, err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue // no descriptors
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			_ = syscall.SetNonblock(fd, true) // events wait in the runtime's poller
			files = append(files, os.NewFile(uintptr(fd), "ring"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
}

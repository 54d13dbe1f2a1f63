//go:build unix

package ring

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// The messages between a process and the creator of a ring over an abstract UNIX socket: one
// request, and one or two answers, of fixed size. A connection that holds a role stays open as long
// as the role is held.

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
	for _, c := range name {
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

// trusted refuses the peer of another user.
func trusted(c *net.UnixConn) error {
	peer, err := fdpass.PeerOf(c)
	if err != nil {
		return fmt.Errorf("ask who the peer is: %w", err)
	}
	if int(peer.UID) != os.Getuid() {
		return fmt.Errorf("%w: %s", ErrPermission, userName(peer.UID))
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
	b := make([]byte, answerSize+1)
	got, came, err := fdpass.Receive(c, b)
	if err != nil {
		return 0, nil, err
	}
	if err = came.Bad; err != nil {
		err = fmt.Errorf("%w: %w", ErrPeer, err)
	} else {
		answer, err = parse(b[:got])
	}
	if err == nil && len(came.Files) != n && (answer == answerOK || len(came.Files) > 0) {
		err = fmt.Errorf("%w: %d descriptors in place of %d", ErrPeer, len(came.Files), n)
	}
	if err != nil {
		came.Close()
		return 0, nil, err
	}
	for _, fd := range came.Files {
		_ = syscall.SetNonblock(fd, true) // events wait in the runtime's poller
		files = append(files, os.NewFile(uintptr(fd), "ring"))
	}
	return answer, files, nil
}

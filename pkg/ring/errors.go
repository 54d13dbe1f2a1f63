package ring

import (
	"errors"
	"io"
	"net"
)

// Errors of a ring. The text around them names what was wrong in this case.
var (
	// ErrConfig: sizes that make no sense.
	ErrConfig = errors.New("bad ring configuration")
	// ErrExists: another process has a ring of this name.
	ErrExists = errors.New("ring exists")
	// ErrNotExist: no process has a ring of this name.
	ErrNotExist = errors.New("no such ring")
	// ErrPermission: the ring, or the process that asks for it, belongs to another user.
	ErrPermission = errors.New("ring of another user")
	// ErrVersion: the other side speaks another version.
	ErrVersion = errors.New("ring of another version")
	// ErrPeer: the other side sends what cannot be while attaching.
	ErrPeer = errors.New("bad ring peer")
	// ErrBusy: the role is taken.
	ErrBusy = errors.New("role is taken")
	// ErrTooLarge: more bytes than fit in a packet, or than the buffer takes.
	ErrTooLarge = errors.New("packet too large")
	// ErrMemory: memory of the caller that is not mapped, protected, or of a file that was cut
	// short.
	ErrMemory = errors.New("memory cannot be reached")
	// ErrPeerDied: the other side ended without closing. Packets that it published before were
	// read, or can be read still.
	ErrPeerDied = errors.New("peer died")
	// ErrCorrupt: the other side published what cannot be. The attachment
	// is of no use any more.
	ErrCorrupt = errors.New("ring is corrupt")
	// ErrClosed: this side was closed, or the ring.
	ErrClosed = net.ErrClosed
	// ErrReaderClosed: the reader closed; nothing that follows is read.
	ErrReaderClosed = errors.New("reader closed")
)

// EOF ends a reader's stream: the writer closed, and all it wrote was read.
var EOF = io.EOF

//go:build cgo

package umod_test

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/kdev/umod"
)

// met is a Meeting under way, which ends with a token in over.
type met struct {
	umod.Meeting
	completion uapi.Completion
	over       chan struct{}
}

// meets begins a Meeting.
func (c *client) meets(m umod.Meeting, name string) *met {
	c.t.Helper()
	out := &met{Meeting: m, over: make(chan struct{}, 1)}
	require.Zero(c.t, c.Meet(&out.Meeting, name, &out.completion, func() (func(), syscall.Errno) {
		return func() { out.over <- struct{}{} }, 0
	}))
	return out
}

// ends requires how a Meeting ends, and returns what it made.
func (c *client) ends(m *met, want syscall.Errno) umod.Meeting {
	c.t.Helper()
	<-m.over
	errno := syscall.Errno(m.completion.Error)
	if errno == 0 && m.completion.Status != 0 {
		errno = syscall.EPROTO
	}
	require.Equal(c.t, want, errno, "%+v", m.completion)
	return m.Meeting
}

// TestMeetings: a file meets itself, and its memory is used and freed like any region.
func TestMeetings(t *testing.T) {
	c := newClient(t, "hold")
	does := func(verb umod.Verb, handle, region uint32, want syscall.Errno) umod.Meeting {
		t.Helper()
		return c.ends(c.meets(umod.Meeting{Verb: verb, Handle: handle, Region: region, Size: 100}, "gifts"), want)
	}
	l := does(umod.Listen, 0, 0, 0)
	near := does(umod.Dial, 0, 0, 0)
	far := does(umod.Accept, l.Handle, 0, 0)
	mine := does(umod.Alloc, 0, 0, 0)
	require.EqualValues(t, 100, mine.Size)
	sent := c.meets(umod.Meeting{Verb: umod.Give, Handle: near.Handle, Region: mine.Region}, "")
	got := does(umod.Take, far.Handle, 0, 0)
	c.ends(sent, 0)
	does(umod.Give, near.Handle, mine.Region, syscall.ENOENT)
	o, over := c.start(uapi.Op{Opcode: uapi.OpSendInd, Channel: c.channel, Region: got.Region, Length: got.Size})
	require.Equal(t, syscall.EBUSY, c.unregister(got.Region))
	c.TakeBack(o)
	<-over
	require.Zero(t, c.unregister(got.Region))
	does(umod.Unlisten, l.Handle, 0, 0)
	does(umod.Unlisten, l.Handle, 0, syscall.ENOENT)
	does(umod.Accept, l.Handle, 0, syscall.ENOENT)
	does(umod.Alloc, 0, 0, 0) // goes with the file
	does(umod.Listen, 0, 0, 0)
}

// TestMeetingsThatDoNotBegin leave nothing in flight.
func TestMeetingsThatDoNotBegin(t *testing.T) {
	c := boundClient(t, "hold", 1)
	m, out := umod.Meeting{Verb: umod.Take + 1}, new(uapi.Completion)
	never := func() (func(), syscall.Errno) { return nil, syscall.EMFILE }
	require.Equal(t, syscall.EINVAL, c.Meet(&m, "", out, never))
	m.Verb = umod.Alloc
	require.Equal(t, syscall.EMFILE, c.Meet(&m, "", out, never))
	c.until(0)
	held, over := c.start(c.send("held"))
	require.Equal(t, syscall.EAGAIN, c.Meet(&m, "", out, never))
	c.TakeBack(held)
	<-over
	m.Size = 1 << 40
	c.ends(c.meets(m, ""), syscall.EINVAL)
	require.EqualValues(t, 32, unsafe.Sizeof(m), "as in kmod/lib/library.h")
}

// TestMeetingsEnd: one that waits is taken back, and another ends with the device.
func TestMeetingsEnd(t *testing.T) {
	c := newClient(t, "hold")
	l := c.ends(c.meets(umod.Meeting{Verb: umod.Listen}, "gifts"), 0)
	waits := c.meets(umod.Meeting{Verb: umod.Accept, Handle: l.Handle}, "")
	c.until(1)
	c.TakeBack(&waits.completion)
	<-waits.over
	require.NotZero(t, waits.completion.Status)
	waits = c.meets(umod.Meeting{Verb: umod.Accept, Handle: l.Handle}, "")
	require.NoError(t, c.Close())
	<-waits.over
	require.NotZero(t, waits.completion.Status)
}

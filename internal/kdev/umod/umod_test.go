//go:build cgo

package umod_test

import (
	"cmp"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/kdev/umod"
	_ "github.com/nfcomms/nfcomms/internal/sim" // the device
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a file with one channel. Package kdev's tests hold the rest of it to the
// conformance suite: here are the calls, which only libnfcomms makes.
type client struct {
	*umod.File
	t        *testing.T
	channel  uint32
	readable []bool // what the file said
}

func newClient(t *testing.T, program string) *client {
	t.Helper()
	return boundClient(t, program, 0)
}

func boundClient(t *testing.T, program string, operations int) *client {
	t.Helper()
	dev, err := bridge.Open(t.Context(), "sim:", nil)
	require.NoError(t, err)
	p, err := dev.Start(t.Context(), bridge.Program{Name: program, Targets: 1})
	require.NoError(t, err)
	m := umod.New(dev, umod.Options{MaxOperations: operations})
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	c := &client{t: t}
	c.File = m.Open(func(yes bool) { c.readable = append(c.readable, yes) })
	c.channel = c.call(uapi.Op{Opcode: uapi.OpSubscribe, Target: uint32(p.First)}).Channel
	return c
}

// start begins a call. Its completion is filled when a token has arrived.
func (c *client) start(o uapi.Op) (*uapi.Completion, chan struct{}) {
	c.t.Helper()
	out, over, later := new(uapi.Completion), make(chan struct{}, 1), false
	errno := c.Call(&o, out, func() (func(), syscall.Errno) {
		later = true
		return func() { over <- struct{}{} }, 0
	})
	require.Zero(c.t, errno)
	if !later {
		over <- struct{}{}
	}
	return out, over
}

func (c *client) call(o uapi.Op) *uapi.Completion {
	c.t.Helper()
	out, over := c.start(o)
	<-over
	return out
}

// until waits until so many operations are in flight.
func (c *client) until(n uint32) {
	h := uapi.Health{Size: uint32(unsafe.Sizeof(uapi.Health{})), Operations: n + 1}
	for h.Operations != n {
		runtime.Gosched()
		require.Zero(c.t, c.Ioctl(uapi.IOCHealth, unsafe.Pointer(&h)))
	}
}

func (c *client) send(text string) uapi.Op {
	o := uapi.Op{Opcode: uapi.OpSend, Channel: c.channel, Length: uint64(len(text))}
	copy(o.Payload[:], text)
	return o
}

// TestCallEndsAtOnce: what need not wait asks for nothing to wait with.
func TestCallEndsAtOnce(t *testing.T) {
	c := newClient(t, "hold")
	never := func() (func(), syscall.Errno) {
		t.Error("it had to wait")
		return nil, syscall.EMFILE
	}
	var out uapi.Completion
	o := c.send("nobody reads")
	o.Flags = uapi.Nowait
	require.Zero(t, c.Call(&o, &out, never))
	require.EqualValues(t, uapi.NotNow, out.Flags)
	o = c.send("")
	o.Channel = 77
	require.Equal(t, syscall.ENOENT, c.Call(&o, &out, never))
	for _, bad := range []uint64{0, 1, 1 << 20, 1 << 47, ^uint64(0)} {
		o = uapi.Op{Opcode: uapi.OpReceiveInd, Channel: c.channel, Address: bad, Length: 100}
		require.Zero(t, c.Call(&o, &out, never))
		require.EqualValues(t, syscall.EFAULT, out.Error, "%#x", bad)
	}
}

// TestCallThatCannotWait has no effect.
func TestCallThatCannotWait(t *testing.T) {
	c := newClient(t, "hold")
	o, out := c.send("x"), uapi.Completion{}
	full := func() (func(), syscall.Errno) { return nil, syscall.EMFILE }
	require.Equal(t, syscall.EMFILE, c.Call(&o, &out, full))
	h := uapi.Health{Size: uint32(unsafe.Sizeof(uapi.Health{}))}
	require.Zero(t, c.Ioctl(uapi.IOCHealth, unsafe.Pointer(&h)))
	require.Zero(t, h.Operations)
}

// TestTakeBack: a call is taken back by its completion's address, and by nothing else;
// what queues behind continues.
func TestTakeBack(t *testing.T) {
	c := newClient(t, "hold")
	first, firstOver := c.start(c.send("first"))
	second, secondOver := c.start(c.send("second"))
	cancel := uapi.Cancel{Size: uint32(unsafe.Sizeof(uapi.Cancel{}))} // of user data 0, as calls have
	require.Equal(t, syscall.ENOENT, c.Ioctl(uapi.IOCCancel, unsafe.Pointer(&cancel)))
	c.TakeBack(second)
	<-secondOver
	require.EqualValues(t, abi.ErrWithdrawn, second.Status)
	require.Empty(t, firstOver)
	c.TakeBack(new(uapi.Completion))
	c.TakeBack(first)
	<-firstOver
	require.EqualValues(t, abi.ErrWithdrawn, first.Status)
	require.Empty(t, c.readable, "calls are not read")
}

// TestOneReceiver: a call beside another that receives is refused.
func TestOneReceiver(t *testing.T) {
	c := newClient(t, "loopback")
	receive := uapi.Op{Opcode: uapi.OpReceive, Channel: c.channel, Length: 56}
	got, over := c.start(receive)
	require.EqualValues(t, abi.ErrBusy, c.call(receive).Status)
	require.Zero(t, c.call(c.send("echo")).Status)
	<-over
	require.Equal(t, "echo", string(got.Payload[:got.Length]))
}

// kept makes what an address names stay on the heap: a stack may move.
var kept *uapi.Op

// TestUnreadCounts: a file takes no more operations than somebody reads, and cancelling
// many ends each of them once.
func TestUnreadCounts(t *testing.T) {
	const most = 1000
	c := boundClient(t, "hold", most)
	o := c.send("nobody reads")
	kept = &o
	var first uint64
	submit := func() syscall.Errno {
		s := uapi.Submit{Size: uint32(unsafe.Sizeof(uapi.Submit{})), Count: 1, OpSize: uint32(unsafe.Sizeof(o)), Ops: uint64(uintptr(unsafe.Pointer(&o)))}
		defer func() { first = cmp.Or(first, s.FirstID) }()
		return c.Ioctl(uapi.IOCSubmit, unsafe.Pointer(&s))
	}
	for range most { // all with one user data
		require.Zero(t, submit())
	}
	require.Equal(t, syscall.EAGAIN, submit())
	cancel := uapi.Cancel{Size: uint32(unsafe.Sizeof(uapi.Cancel{}))}
	for cancel.ID = first; cancel.ID < first+3; cancel.ID++ {
		require.Zero(t, c.Ioctl(uapi.IOCCancel, unsafe.Pointer(&cancel)))
	}
	c.until(most - 3)
	require.Equal(t, syscall.EAGAIN, submit(), "they are unread")
	var got [2]uapi.Completion
	require.Equal(t, 2, c.Take(got[:]))
	require.ElementsMatch(t, []bool{true, true}, []bool{got[0].ID-first < 3, got[1].ID-first < 3})
	require.NotZero(t, got[0].Epoch)
	require.Equal(t, got[0].Epoch, got[1].Epoch)
	require.Zero(t, submit())
	require.Equal(t, 1, c.Take(got[:]))
	require.Zero(t, c.Take(got[:]))
	require.Equal(t, []bool{true, false}, c.readable)
}

// TestReset: the handle stays, of no use; another shape needs a way to make it.
func TestReset(t *testing.T) {
	c := newClient(t, "loopback")
	r := uapi.Reset{Size: uint32(unsafe.Sizeof(uapi.Reset{})), Islands: 2}
	require.Equal(t, syscall.EINVAL, c.Ioctl(uapi.IOCReset, unsafe.Pointer(&r)))
	require.Zero(t, c.call(c.send("still there")).Status)
	r.Islands = 0
	require.Zero(t, c.Ioctl(uapi.IOCReset, unsafe.Pointer(&r)))
	require.EqualValues(t, abi.ErrReset, c.call(c.send("x")).Status)
	closing := uapi.Op{Opcode: uapi.OpClose, Flags: uapi.H2D | uapi.D2H, Channel: c.channel}
	require.Zero(t, c.call(closing).Status)
	var out uapi.Completion
	require.Equal(t, syscall.ENOENT, c.Call(&closing, &out, nil))
}

// TestNameWithoutEnd is refused.
func TestNameWithoutEnd(t *testing.T) {
	c := newClient(t, "loopback")
	r := uapi.RequestStart{Request: uapi.ControlStart, Targets: 1}
	for i := range r.Name {
		r.Name[i] = 'x'
	}
	var out uapi.Completion
	require.Equal(t, syscall.EINVAL, c.Call(&uapi.Op{Opcode: uapi.OpControl, Payload: uapi.Pack(r)}, &out, nil))
}

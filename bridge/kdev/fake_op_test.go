//go:build cgo

package kdev

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/kdev/uapi"
)

// fakeOp is an operation that the fake module took. It is a context as well,
// used again unless it was cancelled: the suite counts what the module allocates
// as if the back end did.
type fakeOp struct {
	raw  uapi.Op
	out  uapi.Completion // what comes of it
	half *fakeHalf       // in whose queue it is; guarded by file.mu

	mu   sync.Mutex
	done chan struct{}
	err  error
}

var _ context.Context = (*fakeOp)(nil)

func (o *fakeOp) Deadline() (time.Time, bool) { return time.Time{}, false }
func (o *fakeOp) Value(any) any               { return nil }

func (o *fakeOp) Done() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

func (o *fakeOp) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *fakeOp) cancel() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = context.Canceled
		close(o.done)
	}
}

// data returns the caller's memory as the module sees it.
func (o *fakeOp) data() []byte {
	if o.raw.Length == 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&o.raw.Address)), o.raw.Length)
}

// simple operations are used again. The others may be parents of contexts, which
// look at them when they are long over.
func simple(o *uapi.Op) bool {
	return o.Channel != 0 && o.TimeoutNS == 0 && o.Flags == 0
}

// takeLocked makes an operation the file's. Must hold mu.
func (f *fakeFile) takeLocked(raw *uapi.Op) *fakeOp {
	var o *fakeOp
	if n := len(f.free); n > 0 && simple(raw) {
		o, f.free = f.free[n-1], f.free[:n-1]
	} else {
		o = &fakeOp{}
	}
	o.raw, o.half = *raw, nil
	o.mu.Lock()
	if o.done == nil || o.err != nil {
		o.done, o.err = make(chan struct{}), nil
	}
	o.mu.Unlock()
	f.flying = append(f.flying, o)
	f.pinned += pinned(raw)
	return o
}

func pinned(raw *uapi.Op) uint64 {
	if raw.Opcode == uapi.OpSendInd || raw.Opcode == uapi.OpReceiveInd || raw.Opcode == uapi.OpControl {
		return raw.Length
	}
	return 0
}

// land ends an operation: it cannot be cancelled any more.
func (f *fakeFile) land(o *fakeOp) {
	f.mu.Lock()
	if i := slices.Index(f.flying, o); i >= 0 {
		f.flying[i] = f.flying[len(f.flying)-1]
		f.flying = f.flying[:len(f.flying)-1]
		f.pinned -= pinned(&o.raw)
		if simple(&o.raw) {
			f.free = append(f.free, o)
		}
	}
	f.mu.Unlock()
}

// complete ends an operation with a completion.
func (f *fakeFile) complete(o *fakeOp, c uapi.Completion) {
	c.UserData, c.Opcode = o.raw.UserData, o.raw.Opcode
	if c.Channel == 0 {
		c.Channel = o.raw.Channel
	}
	f.land(o)
	f.post(c)
}

// outcome fills a completion with what became of a call.
func outcome(c uapi.Completion, o *fakeOp, err error) uapi.Completion {
	if err == nil {
		return c
	}
	status, ok := bridge.StatusOf(err)
	if !ok {
		status = abi.ErrProto
	}
	if status == abi.ErrWithdrawn && !errors.Is(err, context.Canceled) {
		status = abi.ErrTimeout // the device's, of SEND_IND with a time-out
	}
	c.Status = uint32(status)
	var transfer *bridge.TransferError
	if errors.As(err, &transfer) {
		c.Processed, c.Outstanding = transfer.Processed, transfer.Outstanding
		c.List, c.Entry = transfer.List, transfer.Entry
	}
	var size *bridge.SizeError
	if errors.As(err, &size) {
		c.PeerSize = size.Device
	}
	return c
}

// flagsOf lists the flags that mean something for an opcode.
var flagsOf = [uapi.OpCount]uint16{
	uapi.OpClose: uapi.H2D | uapi.D2H, uapi.OpSend: uapi.Nowait | uapi.Hold, uapi.OpReceive: uapi.Nowait | uapi.Hold,
	uapi.OpReceiveInd: uapi.Nowait | uapi.Hold, uapi.OpArm: uapi.H2D | uapi.D2H | uapi.Hold,
	uapi.OpSendInd: uapi.Nowait | uapi.Hold, uapi.OpNext: uapi.Nowait, uapi.OpRefuse: uapi.H2D,
}

// valid returns what is wrong with the fields of an operation.
func valid(o *uapi.Op) syscall.Errno {
	memory := o.Opcode == uapi.OpSendInd || o.Opcode == uapi.OpReceiveInd || o.Opcode == uapi.OpControl
	payload := o.Opcode == uapi.OpSend || o.Opcode == uapi.OpControl
	message := o.Opcode == uapi.OpSend || o.Opcode == uapi.OpReceive
	switch {
	case o.Opcode == 0 || o.Opcode >= uapi.OpCount || o.Flags&^flagsOf[o.Opcode] != 0:
	case o.Rsvd != [4]uint64{} || o.TimeoutNS != 0 && o.Opcode != uapi.OpSendInd:
	case !memory && o.Address != 0 || !payload && o.Payload != [uapi.PayloadSize]byte{}:
	case !memory && !message && o.Length != 0 && o.Opcode != uapi.OpSubscribe && o.Flags != uapi.H2D:
	case o.Opcode == uapi.OpSendInd && o.Flags != 0 && o.TimeoutNS != 0:
	case message && o.Length > uapi.PayloadSize:
	case o.Opcode == uapi.OpClose && (o.Flags == 0 || o.Length != 0):
	case o.Opcode == uapi.OpArm && (o.Flags&^uapi.Hold != uapi.H2D && o.Flags != uapi.D2H || o.Length != 0):
	case o.Opcode == uapi.OpReceive && o.Flags == uapi.Nowait|uapi.Hold, o.Opcode == uapi.OpReceiveInd && o.Flags == uapi.Nowait|uapi.Hold:
	case (o.Opcode == uapi.OpSend || o.Opcode == uapi.OpSendInd) && o.Flags == uapi.Hold:
	case (o.Opcode == uapi.OpSubscribe || o.Opcode == uapi.OpControl) != (o.Channel == 0):
	default:
		return 0
	}
	return syscall.EINVAL
}

func (f *fakeFile) submit(s *uapi.Submit) syscall.Errno {
	if errno := sized(s, s.Size); errno != 0 {
		return errno
	}
	if s.Count == 0 || s.Count > batchMax || s.Rsvd != 0 || s.OpSize != uint32(unsafe.Sizeof(uapi.Op{})) {
		return syscall.EINVAL
	}
	if s.Ops == 0 {
		return syscall.EFAULT
	}
	ops := unsafe.Slice(*(**uapi.Op)(unsafe.Pointer(&s.Ops)), s.Count)
	for i := range ops {
		if errno := f.accept(&ops[i]); errno != 0 {
			s.Accepted, s.Error = uint32(i), uint32(errno)
			if i == 0 {
				return errno
			}
			return 0
		}
	}
	s.Accepted, s.Error = s.Count, 0
	return 0
}

// accept takes one operation.
func (f *fakeFile) accept(raw *uapi.Op) syscall.Errno {
	if errno := valid(raw); errno != 0 {
		return errno
	}
	f.mu.Lock()
	ch := f.channels[raw.Channel]
	if raw.Channel != 0 && ch == nil {
		f.mu.Unlock()
		return syscall.ENOENT
	}
	ending := raw.Opcode == uapi.OpClose || raw.Opcode == uapi.OpAccept || raw.Opcode == uapi.OpRefuse
	if len(f.flying) >= f.module.maxOps && !ending {
		f.mu.Unlock()
		return syscall.EAGAIN
	}
	if n, limit := pinned(raw), f.module.memlock; limit != 0 && f.pinned+n > limit {
		f.mu.Unlock()
		f.post(uapi.Completion{UserData: raw.UserData, Opcode: raw.Opcode, Error: uint32(syscall.ENOMEM), PeerSize: limit})
		return 0
	}
	if pinned(raw) > 0 && (raw.Address == 0 || raw.Address>>47 != 0) {
		f.mu.Unlock()
		f.post(uapi.Completion{UserData: raw.UserData, Opcode: raw.Opcode, Error: uint32(syscall.EFAULT)})
		return 0
	}
	o := f.takeLocked(raw)
	o.half = ch.runs(raw.Opcode)
	f.mu.Unlock()
	switch raw.Opcode {
	case uapi.OpSubscribe:
		f.work.Go(func() { f.subscribe(o) })
	case uapi.OpControl:
		f.work.Go(func() { f.control(o) })
	default:
		ch.accept(o)
	}
	return 0
}

func (f *fakeFile) cancel(c *uapi.Cancel) syscall.Errno {
	if errno := sized(c, c.Size); errno != 0 {
		return errno
	}
	if c.Flags != 0 || c.Rsvd != [2]uint64{} {
		return syscall.EINVAL
	}
	f.mu.Lock()
	found := syscall.ENOENT
	var queued []*fakeOp
	for _, o := range f.flying {
		if o.raw.UserData == c.UserData {
			found = 0
			o.cancel()
			if o.half != nil && o.half.remove(o) {
				queued = append(queued, o)
			}
		}
	}
	f.mu.Unlock()
	for _, o := range queued {
		f.complete(o, uapi.Completion{Status: uint32(abi.ErrWithdrawn)})
	}
	return found
}

func (f *fakeFile) subscribe(o *fakeOp) {
	ch, err := f.module.device().Subscribe(o, bridge.Target(o.raw.Length))
	if err != nil {
		f.complete(o, outcome(uapi.Completion{}, o, err))
		return
	}
	f.mu.Lock()
	f.handle++
	handle := f.handle
	f.channels[handle] = newFakeChannel(f, ch)
	f.mu.Unlock()
	f.complete(o, uapi.Completion{Channel: handle})
}

// control makes the request of a struct nfc_control.
func (f *fakeFile) control(o *fakeOp) {
	var in, out abi.Slot
	copy(in.Bytes()[:], o.raw.Payload[:])
	req := in.Control()
	reply := out.Control()
	*reply = abi.Control{Op: req.Op, Request: req.Request}
	err := f.ask(o, req, reply)
	status, _ := bridge.StatusOf(err)
	c := uapi.Completion{}
	if status == abi.ErrReset || status == abi.ErrFault || status == abi.ErrWithdrawn {
		c.Status = uint32(status) // there is no reply
	}
	reply.Status = uint16(status)
	copy(c.Payload[:], out.Bytes()[:])
	f.complete(o, c)
}

// ask makes one request on the control channel.
func (f *fakeFile) ask(o *fakeOp, req, reply *abi.Control) error {
	dev := f.module.device()
	switch req.Op {
	case abi.ControlStart:
		end := slices.Index(req.Name[:], 0)
		p, err := dev.Start(o, bridge.Program{
			Name: string(req.Name[:end]), First: bridge.Target(req.A), Targets: int(req.B), Argument: req.C,
		})
		if err == nil {
			f.mu.Lock()
			f.processes[p.ID] = true
			f.mu.Unlock()
		}
		reply.A, reply.B = uint64(p.ID), uint64(p.First)
		return err
	case abi.ControlStop:
		if f.module.owner(bridge.ProcessID(req.A), f) {
			return bridge.ErrInvalid
		}
		return dev.Stop(o, bridge.ProcessID(req.A))
	case abi.ControlLoad:
		name, err := dev.Load(o, o.data())
		copy(reply.Name[:], name)
		return err
	case abi.ControlProgram:
		names, err := dev.Programs(o)
		if err == nil && req.A >= uint64(len(names)) {
			err = bridge.ErrNoProgram
		}
		if err == nil {
			copy(reply.Name[:], names[req.A])
		}
		return err
	case abi.ControlRunning:
		running, err := dev.Running(o, bridge.ProcessID(req.A))
		if running {
			reply.B = 1
		}
		return err
	case abi.ControlMemory:
		m, err := dev.Memory(o, int(req.A))
		reply.A, reply.B, reply.C = m.Base, m.Size, m.Free
		return err
	default:
		return bridge.ErrInvalid
	}
}

// owner reports whether a process belongs to another file.
func (m *fakeModule) owner(id bridge.ProcessID, to *fakeFile) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.files {
		f.mu.Lock()
		other := f != to && f.processes[id]
		f.mu.Unlock()
		if other {
			return true
		}
	}
	return false
}

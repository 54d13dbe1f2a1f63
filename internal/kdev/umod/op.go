package umod

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/stamp"
)

// operation is one that the module took. It is a context as well, used again unless it was
// cancelled.
type operation struct {
	raw  uapi.Op
	id   uint64
	born uint32          // the epoch it is in
	out  uapi.Completion // what comes of it
	half *half           // in whose queue it is; guarded by file.mu
	at   int             // in file.flying; guarded by file.mu

	area   *area          // the region that its memory is in
	traced *stamp.Context // of one that is stamped, else nil

	// Of a call: the place of its completion, and the function to call then. It is not posted.
	to   *uapi.Completion
	over func()

	mu   sync.Mutex
	done chan struct{}
	err  error
}

var _ context.Context = (*operation)(nil)

func (o *operation) Deadline() (time.Time, bool) { return time.Time{}, false }
func (o *operation) Value(any) any               { return nil }

func (o *operation) Done() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

func (o *operation) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *operation) cancel() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = context.Canceled
		close(o.done)
	}
}

// data returns the caller's memory as the module sees it.
func (o *operation) data() []byte {
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
func (f *File) takeLocked(raw *uapi.Op) *operation {
	var o *operation
	if n := len(f.free); n > 0 && simple(raw) {
		o, f.free = f.free[n-1], f.free[:n-1]
	} else {
		o = &operation{}
	}
	o.raw, o.over, o.traced = *raw, nil, nil
	if raw.Flags&uapi.Stamped != 0 {
		o.traced = &stamp.Context{}
		o.traced.Begin()
	}
	o.mu.Lock()
	if o.done == nil || o.err != nil {
		o.done, o.err = make(chan struct{}), nil
	}
	o.mu.Unlock()
	o.at = len(f.flying)
	f.flying = append(f.flying, o)
	return o
}

// names reports whether an operation names memory of the caller.
func names(raw *uapi.Op) bool {
	memory := raw.Opcode == uapi.OpSendInd || raw.Opcode == uapi.OpReceiveInd || raw.Opcode == uapi.OpControl
	return memory && raw.Length > 0
}

// land ends an operation: it cannot be cancelled any more. It may be another's at once.
func (f *File) land(o *operation) {
	f.mu.Lock()
	if o.area != nil {
		o.area.users--
		o.area = nil
	}
	last := f.flying[len(f.flying)-1]
	f.flying[o.at], last.at = last, o.at
	f.flying = f.flying[:len(f.flying)-1]
	if simple(&o.raw) {
		f.free = append(f.free, o)
	}
	f.mu.Unlock()
}

// complete ends an operation with a completion.
func (f *File) complete(o *operation, c uapi.Completion) {
	c.UserData, c.Opcode, c.ID, c.Epoch = o.raw.UserData, o.raw.Opcode, o.id, o.born
	if c.Channel == 0 {
		c.Channel = o.raw.Channel
	}
	to, over, r := o.to, o.over, o.record(c)
	f.land(o)
	if to == nil {
		f.post(r)
		return
	}
	*to = c
	over()
}

// in returns ctx as the context of a call that is measured where the operation is stamped.
func (o *operation) in(ctx context.Context) context.Context {
	if o.traced == nil {
		return ctx
	}
	return o.traced.Of(ctx)
}

// record is a completion, with the times of an operation that is stamped.
func (o *operation) record(c uapi.Completion) uapi.Record {
	r := uapi.Record{Completion: c}
	if o.traced != nil {
		direction := abi.H2D
		if o.raw.Opcode == uapi.OpReceive || o.raw.Opcode == uapi.OpReceiveInd {
			direction = abi.D2H
		}
		s := o.traced.Record.Driver(direction)
		r.Stamps = uapi.Stamps{
			TakenNS: s.Taken, ReadyNS: s.Ready, PutNS: s.Put, AnsweredNS: s.Answered, CompletedNS: s.Completed,
			BeganNS: s.Began, MetNS: s.Met, DoneNS: s.Done,
		}
	}
	return r
}

// epoch returns the context of an operation that may be meant for one epoch alone.
func (o *operation) epoch() context.Context { return bridge.InEpoch(o, o.raw.Epoch) }

// late returns ESTALE if the epoch that an operation was meant for is over.
func (o *operation) late(err error) uint32 {
	if o.raw.Epoch != 0 && errors.Is(err, bridge.ErrReset) {
		return uint32(syscall.ESTALE)
	}
	return 0
}

// outcome fills a completion with what became of a call.
func outcome(c uapi.Completion, o *operation, err error) uapi.Completion {
	if err == nil {
		return c
	}
	c.Error = o.late(err)
	if errors.Is(err, bridge.ErrMoved) {
		c.Error = uint32(syscall.EREMOTE)
	}
	var errno syscall.Errno
	status, ok := bridge.StatusOf(err)
	if !ok && errors.As(err, &errno) { // of a Meeting
		c.Error = uint32(errno)
	}
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

// moves are the flags of what moves bytes.
const moves = uapi.Nowait | uapi.Hold | uapi.Stamped

// flagsOf lists the flags that mean something for an opcode.
var flagsOf = [uapi.OpCount]uint16{
	uapi.OpClose: uapi.H2D | uapi.D2H, uapi.OpSend: moves, uapi.OpReceive: moves,
	uapi.OpReceiveInd: moves, uapi.OpArm: uapi.H2D | uapi.D2H | uapi.Hold,
	uapi.OpSendInd: moves, uapi.OpAsk: uapi.Nowait | uapi.Hold, uapi.OpNext: uapi.Nowait, uapi.OpRefuse: uapi.H2D,
}

// valid returns what is wrong with the fields of an operation.
func valid(o *uapi.Op) syscall.Errno {
	memory := o.Opcode == uapi.OpSendInd || o.Opcode == uapi.OpReceiveInd || o.Opcode == uapi.OpControl
	sends := o.Opcode == uapi.OpSend || o.Opcode == uapi.OpAsk
	payload := sends || o.Opcode == uapi.OpControl
	message := sends || o.Opcode == uapi.OpReceive
	flags := o.Flags &^ uapi.Stamped
	switch {
	case o.Opcode == 0 || o.Opcode >= uapi.OpCount || o.Flags&^flagsOf[o.Opcode] != 0:
	case o.Rsvd != 0 || o.Target != 0 && o.Opcode != uapi.OpSubscribe || o.Operation != 0 && (o.Opcode != uapi.OpRefuse || o.Flags != uapi.H2D):
	case o.Region == 0 && o.Offset != 0, o.Region != 0 && (o.Address != 0 || o.Opcode != uapi.OpSendInd && o.Opcode != uapi.OpReceiveInd):
	case o.Epoch != 0 && o.Channel != 0 || o.TimeoutNS != 0 && o.Opcode != uapi.OpSendInd:
	case !memory && o.Address != 0 || !payload && o.Payload != [uapi.PayloadSize]byte{}:
	case !memory && !message && o.Length != 0:
	case o.Opcode == uapi.OpSendInd && flags != 0 && o.TimeoutNS != 0:
	case message && o.Length > uapi.PayloadSize:
	case o.Opcode == uapi.OpClose && o.Flags == 0:
	case o.Opcode == uapi.OpArm && (o.Flags&^uapi.Hold != uapi.H2D && o.Flags != uapi.D2H):
	case (o.Opcode == uapi.OpReceive || o.Opcode == uapi.OpReceiveInd) && flags == uapi.Nowait|uapi.Hold:
	case (sends || o.Opcode == uapi.OpSendInd) && flags == uapi.Hold:
	case (o.Opcode == uapi.OpSubscribe || o.Opcode == uapi.OpControl) != (o.Channel == 0):
	case o.Opcode == uapi.OpControl && !validRequest(o):
	default:
		return 0
	}
	return syscall.EINVAL
}

// countMax bounds the operations of a SUBMIT.
const countMax = 256

func (f *File) submit(s *uapi.Submit) syscall.Errno {
	if errno := sized(s, s.Size); errno != 0 {
		return errno
	}
	if s.Count == 0 || s.Count > countMax || s.Rsvd != 0 || s.OpSize != uint32(unsafe.Sizeof(uapi.Op{})) {
		return syscall.EINVAL
	}
	if s.Ops == 0 {
		return syscall.EFAULT
	}
	ops := unsafe.Slice(*(**uapi.Op)(unsafe.Pointer(&s.Ops)), s.Count)
	s.FirstID = f.ids.Add(uint64(s.Count)) - uint64(s.Count) + 1
	for i := range ops {
		if errno := f.accept(&ops[i], s.FirstID+uint64(i)); errno != 0 {
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

// accept takes one operation and begins it.
func (f *File) accept(raw *uapi.Op, id uint64) syscall.Errno {
	o, ch, errno := f.admit(raw, id, nil)
	if errno != 0 {
		return errno
	}
	if lacks := f.prepare(o); lacks != 0 {
		f.complete(o, refused(lacks))
	} else {
		f.begin(o, ch)
	}
	return 0
}

// admit makes an operation the file's, if it is in order; ch is nil where it has none. to is
// where a call's completion goes, else nil.
func (f *File) admit(raw *uapi.Op, id uint64, to *uapi.Completion) (o *operation, ch *channel, errno syscall.Errno) {
	if errno := valid(raw); errno != 0 {
		return nil, nil, errno
	}
	var epoch uint32
	if raw.Channel == 0 {
		epoch = f.module.Device().Info().Epoch
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ch = f.channels[raw.Channel]
	if raw.Channel != 0 && ch == nil {
		return nil, nil, syscall.ENOENT
	}
	ending := raw.Opcode == uapi.OpClose || raw.Opcode == uapi.OpAccept || raw.Opcode == uapi.OpRefuse
	unread := len(f.ready) - f.taken
	if len(f.flying)+unread >= f.module.options.MaxOperations && !ending {
		return nil, nil, syscall.EAGAIN
	}
	o = f.takeLocked(raw)
	o.half, o.to, o.id, o.born = ch.runs(raw.Opcode), to, id, epoch
	if ch != nil {
		o.born = ch.epoch
	}
	return o, ch, 0
}

// begin starts an operation: from here on it has exactly one completion.
func (f *File) begin(o *operation, ch *channel) {
	switch o.raw.Opcode {
	case uapi.OpSubscribe:
		f.work.Go(func() { f.subscribe(o) })
	case uapi.OpControl:
		f.work.Go(func() { f.control(o) })
	default:
		ch.accept(o)
	}
}

// prepare finds the memory of an operation. An errno: it is not there.
func (f *File) prepare(o *operation) syscall.Errno {
	errno := f.occupy(o)
	if errno == 0 && !o.reachable() {
		errno = syscall.EFAULT
	}
	return errno
}

// refused is the completion of an operation whose memory is not there.
func refused(errno syscall.Errno) uapi.Completion {
	return uapi.Completion{Status: uint32(abi.ErrInvalid), Error: uint32(errno)}
}

// reachable reports whether the memory that an operation names can be read, or written to
// where it receives. Its pages are there then, as those that the kernel module pins: no copy
// of a back end faults.
func (o *operation) reachable() bool {
	return !names(&o.raw) || there(o.raw.Address, o.raw.Length, o.raw.Opcode == uapi.OpReceiveInd)
}

// there reports the same of bytes at an address.
func there(a, n uint64, write bool) bool {
	const top = 1 << 47
	return a != 0 && a < top && n <= top-a && populate(uintptr(a), uintptr(n), write)
}

func (f *File) cancel(c *uapi.Cancel) syscall.Errno {
	if errno := sized(c, c.Size); errno != 0 {
		return errno
	}
	if c.Flags != 0 || c.Rsvd != [2]uint64{} {
		return syscall.EINVAL
	}
	return f.withdraw(func(o *operation) bool { return o.to == nil && o.id == c.ID })
}

// withdraw takes operations back; ENOENT if there is none.
func (f *File) withdraw(which func(*operation) bool) syscall.Errno {
	f.mu.Lock()
	found := syscall.ENOENT
	halves := make(map[*half]bool)
	for _, o := range f.flying {
		if which(o) {
			found = 0
			o.cancel()
			halves[o.half] = true
		}
	}
	var queued []*operation
	for h := range halves {
		queued = h.sweep(queued)
	}
	f.mu.Unlock()
	for _, o := range queued {
		f.complete(o, uapi.Completion{Status: uint32(abi.ErrWithdrawn)})
	}
	return found
}

func (f *File) subscribe(o *operation) {
	ch, err := f.module.Device().Subscribe(o.epoch(), bridge.Target(o.raw.Target))
	if err != nil {
		f.complete(o, outcome(uapi.Completion{}, o, err))
		return
	}
	f.complete(o, uapi.Completion{Channel: f.add(ch, o.born)})
}

// add gives a channel of an epoch a handle.
func (f *File) add(ch bridge.Channel, epoch uint32) (handle uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle++
	f.channels[f.handle] = newChannel(f, ch, epoch)
	return f.handle
}

// owner reports whether a process belongs to another file.
func (m *Module) owner(id bridge.ProcessID, to *File) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for f := range m.files {
		f.mu.Lock()
		other := f != to && f.processes[id]
		f.mu.Unlock()
		if other {
			return true
		}
	}
	return false
}

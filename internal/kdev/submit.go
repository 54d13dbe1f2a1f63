package kdev

import (
	"sync"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// batchMax is the number of operations that one submission takes.
const batchMax = 256

// withdrawals is how often the end of an operation is asked for.
const withdrawals = 4

// kernel is an open device node: the module, or what plays it in a test.
type kernel interface {
	// ioctl makes one call. It retries what a signal interrupted.
	ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno
	// read waits for completions and returns how many it stored. After close
	// it returns os.ErrClosed.
	read(to []uapi.Record) (int, error)
	// registers makes a call on the node of the registers: ENOTTY where there is none.
	registers(number uintptr, argument unsafe.Pointer) syscall.Errno
	// sysfs returns the folder that describes the node's device; empty if there is none.
	sysfs() string
	// close ends a read, and gives back what the module holds for this file.
	close() error
}

// submitter passes operations to the module, many with one call when several goroutines submit at
// once: all queue, and the first one takes the whole queue along.
type submitter struct {
	k     kernel
	table *table

	mu     sync.Mutex // guards queue and queued
	queue  []*op
	queued uint64 // operations that ever queued

	sending sync.Mutex // guards what follows, and serialises submissions
	taken   uint64     // operations that ever left the queue
	work    []*op
	batch   *[batchMax]uapi.Op
	call    uapi.Submit
}

func (s *submitter) init(k kernel, t *table) {
	s.k, s.table = k, t
	s.batch = new([batchMax]uapi.Op)
}

// put submits an operation that holds no memory, and returns when the module
// has it, or it has failed.
func (s *submitter) put(o *op) {
	if o.late {
		s.refuse(o, syscall.ENODEV)
		return
	}
	s.mu.Lock()
	s.queue = append(s.queue, o)
	s.queued++
	place := s.queued
	s.mu.Unlock()
	s.sending.Lock()
	if s.taken < place {
		s.mu.Lock()
		s.work, s.queue = s.queue, s.work[:0]
		s.taken = s.queued
		s.mu.Unlock()
		s.flush()
	}
	s.sending.Unlock()
}

// flush submits the work. Must hold sending.
func (s *submitter) flush() {
	for todo := s.work; len(todo) > 0; {
		part := todo[:min(len(todo), batchMax)]
		for i, o := range part {
			s.batch[i] = o.raw
		}
		n, errno := s.submit(&s.call, s.batch[:len(part)])
		if errno != 0 && n < len(part) {
			s.refuse(part[n], errno)
			n++
		}
		todo = todo[n:]
	}
	clear(s.work)
}

// alone submits an operation by itself: one that holds memory may take long,
// because its pages are pinned, and others must not wait for that.
func (s *submitter) alone(o *op) {
	if o.late {
		s.refuse(o, syscall.ENODEV)
		return
	}
	if _, errno := s.submit(&o.submit, unsafe.Slice(&o.raw, 1)); errno != 0 {
		s.refuse(o, errno)
	}
}

// submit makes one call. It returns how many operations were taken, and what is
// wrong with the next one.
func (s *submitter) submit(call *uapi.Submit, ops []uapi.Op) (int, syscall.Errno) {
	*call = uapi.Submit{
		Size: uint32(unsafe.Sizeof(*call)), Count: uint32(len(ops)),
		Ops: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(ops)))), OpSize: uint32(unsafe.Sizeof(ops[0])),
	}
	if errno := s.k.ioctl(uapi.IOCSubmit, unsafe.Pointer(call)); errno != 0 {
		return 0, errno
	}
	accepted := min(max(int(call.Accepted), 0), len(ops))
	s.table.identify(ops[:accepted], call.FirstID)
	if accepted < len(ops) {
		return accepted, max(syscall.Errno(call.Error), 1)
	}
	return accepted, 0
}

// refuse completes an operation that the module did not take.
func (s *submitter) refuse(o *op, errno syscall.Errno) {
	if s.table.land(o.raw.UserData) == o {
		o.got = uapi.Completion{Error: uint32(errno)}
		o.finish(s.table)
	}
}

// withdraw asks for the end of an operation. Its completion has the result;
// without the operation there is one already. The module may be unable to read
// the request; the caller waits for the end, so it is asked again.
func (s *submitter) withdraw(o *op) {
	o.cancel = uapi.Cancel{Size: uint32(unsafe.Sizeof(o.cancel)), ID: s.table.id(o.raw.UserData)}
	for range withdrawals {
		switch s.k.ioctl(uapi.IOCCancel, unsafe.Pointer(&o.cancel)) {
		case 0, syscall.ENOENT, syscall.ENODEV, syscall.EBADF:
			return
		}
	}
}

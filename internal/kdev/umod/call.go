package umod

import (
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// patience is how long a call is tried on its caller's thread: about what handing it to
// another thread, and being woken by it, costs.
const patience = 20 * time.Microsecond

// Call makes one operation, as NFCOMMS_IOC_CALL does, and fills c. An operation that can be done at
// once is done on the caller's thread. One that has to wait is passed to a goroutine, and only then
// later is called: it returns the function that is called when c is filled, after which nothing
// touches c.
func (f *File) Call(raw *uapi.Op, c *uapi.Completion, later func() (over func(), errno syscall.Errno)) syscall.Errno {
	o, ch, errno := f.admit(raw, f.ids.Add(1), c)
	if errno != 0 {
		return errno
	}
	o.over = func() {}
	if lacks := f.prepare(o); lacks != 0 {
		f.complete(o, refused(lacks))
		return 0
	}
	if h := ch.runs(raw.Opcode); h != nil && h.atOnce(o) {
		f.complete(o, o.out)
		return 0
	}
	if o.over, errno = later(); errno != 0 {
		f.land(o)
		return errno
	}
	f.begin(o, ch)
	return 0
}

// TakeBack ends a pending call early, if that can be: c and over tell how it ended.
func (f *File) TakeBack(c *uapi.Completion) {
	f.withdraw(func(o *operation) bool { return o.to == c })
}

// atOnce makes an operation without waiting for the target, if that can be. It does not
// pass those that are queued, and asks nobody: an answer may take any time.
func (h *half) atOnce(o *operation) bool {
	flags := o.raw.Flags
	waits := flags&uapi.Nowait == 0
	if flags&(uapi.Hold|uapi.Stamped) != 0 || o.raw.Opcode == uapi.OpAsk || o.raw.TimeoutNS != 0 || waits && h.first() != nil {
		return false
	}
	defer func() { o.raw.Flags = flags }()
	o.raw.Flags |= uapi.Nowait
	for start := time.Now(); ; {
		_, o.out = h.run(o)
		if !waits || o.out.Flags&uapi.NotNow == 0 {
			return true
		}
		if time.Since(start) > patience {
			return false
		}
	}
}

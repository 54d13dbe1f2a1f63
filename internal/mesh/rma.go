package mesh

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// lookTime is how long one caller of a mesh waits with its thread before it parks. That
// wakes it some microseconds sooner, and operations up to a MiB to a neighbour end in it.
const lookTime = time.Millisecond

// Limits of windows.
const (
	WindowMax  = 64 << 20 // bytes of a window
	WindowsMax = 256      // windows of a node at once
)

// kind is an error that means what one of the bridge does, with words of its own.
type kind struct {
	text string
	is   error
}

func (k *kind) Error() string { return k.text }
func (k *kind) Unwrap() error { return k.is }

// Errors of puts and gets.
var (
	// ErrWindow means that the key is none of a window there: it never was, or the
	// window was revoked, or its node started anew since.
	ErrWindow error = &kind{"no such window", bridge.ErrNotSubscribed}
	// ErrAccess means that the window may not be used so.
	ErrAccess error = &kind{"window does not allow it", bridge.ErrNotSupported}
	// ErrUnreachable means that no way leads to the node.
	ErrUnreachable error = &kind{"no way leads to the node", bridge.ErrDeviceLost}
	// ErrDead means that the node that asked died meanwhile, or is dead.
	ErrDead error = &kind{"node is dead", bridge.ErrDeviceLost}
)

// Access is what others may do with a window.
type Access = bridge.WindowAccess

// Kinds of access; both may be given.
const (
	Read  = bridge.WindowRead  // get
	Write = bridge.WindowWrite // put
)

// Remote names a window of any node of the fabric: it is what others need to know.
type Remote struct {
	Node int
	Key  uint64
}

// Window is memory of a node of this process that others put to and get from.
type Window struct {
	m      *Mesh
	remote Remote
	mem    []byte
	pin    runtime.Pinner
}

// Window registers memory of a node of this process, until it is revoked or the node dies. Its
// first byte is at offset 0. Puts of others appear in it at any time, and their gets read what is
// there at that moment: a program that writes meanwhile has to agree with them. The error wraps
// bridge.ErrNoMemory where the node has WindowsMax windows or 256 MiB in all, and
// bridge.ErrTooLarge above WindowMax.
func (m *Mesh) Window(node int, mem []byte, access Access) (*Window, error) {
	switch {
	case m.has(node) && !m.here(node):
		return nil, fmt.Errorf("window of node %d, which is elsewhere: %w", node, ErrUnknown)
	case len(mem) == 0 || !access.Valid():
		return nil, fmt.Errorf("window of %d bytes, access %d: %w", len(mem), access, bridge.ErrInvalid)
	}
	w := &Window{m: m, remote: Remote{Node: node}, mem: mem}
	status := abi.OK
	err := m.with(node, func(f *firmware.Mesh) {
		m.windowing.Lock()
		defer m.windowing.Unlock()
		w.pin.Pin(&mem[0])
		w.remote.Key, status = f.Window(node, mem, access&Read != 0, access&Write != 0)
		if status == abi.OK {
			m.windows[w] = true
		} else {
			w.pin.Unpin()
		}
	})
	if err == nil && status != abi.OK {
		err = fmt.Errorf("window of %d bytes of node %d: %w", len(mem), node, accessError(status))
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Remote returns what others need to know of it.
func (w *Window) Remote() Remote { return w.remote }

// Revoke ends the window: requests for it are refused from now on, and its memory is
// not touched any more when Revoke returns. It is idempotent.
func (w *Window) Revoke() {
	// a mesh that was closed has released it
	_ = w.m.with(w.remote.Node, func(f *firmware.Mesh) {
		f.Revoke(w.remote.Node, w.remote.Key)
		w.m.windowing.Lock()
		defer w.m.windowing.Unlock()
		if w.m.windows[w] {
			delete(w.m.windows, w)
			w.pin.Unpin()
		}
	})
}

// forgetWindows gives memory back that no node touches any more.
func (m *Mesh) forgetWindows() {
	m.windowing.Lock()
	defer m.windowing.Unlock()
	for w := range m.windows {
		w.pin.Unpin()
	}
	clear(m.windows)
}

// Put has a node of this process write data to a window from offset on, and returns when all of it
// is there. No program at the window takes part. Packets that the fabric loses are sent again until
// ctx ends, and nothing is written twice. After an error a part of it may be there; none of it
// arrives later than data that the same node puts there after that.
//
// The error wraps ErrWindow, ErrAccess, bridge.ErrRange (a piece is not in the window),
// bridge.ErrDMA (memory of the window, or data, cannot be reached),
// ErrUnreachable, ErrDead, ErrClosed, or is that of ctx. data are not read any more
// when Put returns.
func (m *Mesh) Put(ctx context.Context, node int, to Remote, offset uint64, data []byte) error {
	return m.access(ctx, node, firmware.MeshAccess{To: to.Node, Put: true, Key: to.Key, Offset: offset, Data: data})
}

// Get has a node of this process read from a window from offset on until buf is full.
// Of bytes that are written meanwhile it may read some before and some after. The errors
// are those of [Mesh.Put]; after one, buf may hold anything, and is not written any more.
func (m *Mesh) Get(ctx context.Context, node int, from Remote, offset uint64, buf []byte) error {
	return m.access(ctx, node, firmware.MeshAccess{To: from.Node, Key: from.Key, Offset: offset, Data: buf})
}

func (m *Mesh) access(ctx context.Context, node int, a firmware.MeshAccess) error {
	switch {
	case !m.has(a.To) || m.has(node) && !m.here(node):
		return fmt.Errorf("from node %d to %d: %w", node, a.To, ErrUnknown)
	case a.Offset > math.MaxUint64-uint64(len(a.Data)):
		return fmt.Errorf("%d bytes at offset %d: %w", len(a.Data), a.Offset, bridge.ErrRange)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	op, err := m.begin(node, a)
	if err != nil {
		return err
	}
	defer m.pumps.Done()
	m.await(ctx, node, op)
	switch status := op.Finish(); {
	case status == abi.OK:
		return nil
	case status == abi.ErrWithdrawn:
		return ctx.Err()
	default:
		return fmt.Errorf("%d bytes at offset %d of window %x of node %d: %w", len(a.Data), a.Offset, a.Key, a.To, accessError(status))
	}
}

// begin begins an operation, which pumps counts.
func (m *Mesh) begin(node int, a firmware.MeshAccess) (op *firmware.MeshOp, err error) {
	var failed error
	err = m.with(node, func(f *firmware.Mesh) {
		if m.isClosed() {
			failed = ErrClosed
			return
		}
		m.entering[node].Lock()
		defer m.entering[node].Unlock()
		if op = f.Begin(node, a); op == nil {
			failed = fmt.Errorf("from node %d to %d: %w", node, a.To, bridge.ErrNoMemory)
			return
		}
		m.pumps.Add(1)
	})
	return op, errors.Join(err, failed)
}

// await returns when an operation ended, which the end of ctx makes it do. It waits as a
// goroutine, and holds a thread for lookTime at most, one of the mesh at a time.
func (m *Mesh) await(ctx context.Context, node int, op *firmware.MeshOp) {
	if m.config.Threads == 0 {
		if m.poll(ctx, func() (bool, error) { return op.Look(0), nil }) != nil {
			op.Withdraw()
		}
		return
	}
	if op.Look(lookTime) {
		return
	}
	m.entering[node].Lock()
	ended := op.Park()
	m.entering[node].Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-ctx.Done():
		m.entering[node].Lock()
		op.Withdraw()
		m.entering[node].Unlock()
		<-ended
	}
}

// wakeParked wakes callers whose operation has ended, until the event is closed.
func (m *Mesh) wakeParked(f *firmware.Mesh) {
	defer close(m.woken)
	var count [8]byte
	for {
		if _, err := m.wakes.Read(count[:]); err != nil {
			return
		}
		f.WakeEnded()
	}
}

// accessError is the error that a status of a window stands for.
func accessError(s abi.Status) error {
	switch s {
	case abi.ErrClosed:
		return ErrWindow
	case abi.ErrNotSupported:
		return ErrAccess
	case abi.ErrNoTarget:
		return ErrUnreachable
	case abi.ErrReset:
		return ErrDead
	case abi.ErrStopped:
		return ErrClosed
	}
	return bridge.Error(s)
}

// Lookups are nanoseconds that it takes to find a random page of so many, in windows
// of 16 pages, by each of three ways: the window by a search, by a hash of its key, and
// by a cache of the pages that were used last before that. The last is what nodes do.
type Lookups struct {
	Pages                  int
	Linear, Hashed, Cached float64
	Hits                   float64 // part of the last that the cache knew
}

// MeasureLookups finds count pages of so many, at most 16 * WindowsMax, in each way; the
// fastest of five runs counts.
func MeasureLookups(pages, count int) (Lookups, error) {
	l := Lookups{Pages: pages}
	if pages < 1 || pages > 16*WindowsMax || count < 1 {
		return l, fmt.Errorf("%d lookups of %d pages: %w", count, pages, bridge.ErrInvalid)
	}
	best := func(how firmware.Lookup) (ns, hits float64) {
		ns, hits = firmware.MeasureLookups(how, pages, count)
		for range 4 { // others have the processor now and then
			again, _ := firmware.MeasureLookups(how, pages, count)
			ns = min(ns, again)
		}
		return ns, hits
	}
	l.Linear, _ = best(firmware.LookupLinear)
	l.Hashed, _ = best(firmware.LookupHashed)
	l.Cached, l.Hits = best(firmware.LookupCached)
	return l, nil
}

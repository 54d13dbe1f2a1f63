package nodes

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfcomms/nfcomms/bridge"
)

// holder is a device whose regions stay while somebody needs them.
type holder interface {
	// Hold keeps the region that holds all of mem until release is called; nil if there is
	// none.
	Hold(mem []byte) (release func())
}

// windows are those of this process.
type windows struct {
	mu    sync.Mutex // guards what follows
	open  map[*window]bool
	bytes int
	over  error // why there are none now; nil: there may be
	ends  int   // how often they ended
}

// window is memory of this process that others put to and get from.
type window struct {
	bridge.HostWindow
	of      *windows
	size    int
	release func() // its region; nil: it is in none
	over    sync.Once
}

// Revoke ends it.
func (w *window) Revoke() {
	w.over.Do(func() {
		w.HostWindow.Revoke()
		if w.release != nil {
			w.release()
		}
		w.of.mu.Lock()
		defer w.of.mu.Unlock()
		delete(w.of.open, w)
		w.of.bytes -= w.size
	})
}

// Window makes memory of this process a window of the own node.
func (f *fabric) Window(ctx context.Context, mem []byte, access bridge.WindowAccess) (bridge.HostWindow, error) {
	f.windows.mu.Lock()
	defer f.windows.mu.Unlock()
	if err := f.windows.refuse(mem, access); err != nil {
		return nil, err
	}
	w := &window{of: &f.windows, size: len(mem)}
	if h, ok := f.device.(holder); ok {
		w.release = h.Hold(mem)
	}
	var err error
	if w.HostWindow, err = f.Torus.Window(ctx, mem, access); err != nil {
		if w.release != nil {
			w.release()
		}
		return nil, err
	}
	f.windows.open[w] = true
	f.windows.bytes += w.size
	return w, nil
}

// refuse returns why there is no such window; nil: there may be. Must hold mu.
func (w *windows) refuse(mem []byte, access bridge.WindowAccess) error {
	switch {
	case w.over != nil:
		return w.over
	case len(mem) == 0 || !access.Valid():
		return fmt.Errorf("window of %d bytes, access %d: %w", len(mem), access, bridge.ErrInvalid)
	case len(mem) > bridge.HostWindowBytes:
		return fmt.Errorf("window of %d bytes: %w: at most %d", len(mem), bridge.ErrTooLarge, bridge.HostWindowBytes)
	case len(w.open) == bridge.HostWindows || len(mem) > bridge.HostWindowBytes-w.bytes:
		return fmt.Errorf("window of %d bytes beside %d of %d: %w: a process has %d of %d bytes in all",
			len(mem), len(w.open), w.bytes, bridge.ErrNoMemory, bridge.HostWindows, bridge.HostWindowBytes)
	}
	return nil
}

// end revokes all, and lets nobody make one: why. It returns what begin takes.
func (w *windows) end(why error) (ends int) {
	w.mu.Lock()
	w.over = why
	w.ends++
	ends = w.ends
	all := make([]*window, 0, len(w.open))
	for open := range w.open {
		all = append(all, open)
	}
	w.mu.Unlock()
	for _, open := range all {
		open.Revoke()
	}
	return ends
}

// begin lets windows be made again, unless they ended once more since.
func (w *windows) begin(ends int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends == ends {
		w.over = nil
	}
}

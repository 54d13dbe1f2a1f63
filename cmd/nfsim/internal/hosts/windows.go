//go:build cgo

package hosts

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// clientWindow is memory of a client that others put to and get from. It is mapped here for that
// alone: what else the client does with its memory changes nothing.
type clientWindow struct {
	bridge.HostWindow
	mapping []byte
	size    uint64
}

// openWindow makes memory of the client a window of the process's node, or says what forbids it.
func (h *host) openWindow(m *shmwire.Message, fd int) shmwire.Message {
	access := bridge.WindowAccess(m.Epoch)
	whole, err := shmwire.SizeOf(fd)
	var status abi.Status
	var bound shmwire.Bound
	switch {
	case h.server.fabric == nil:
		status = abi.ErrNotSupported
	case err != nil || !access.Valid() || m.Size == 0 || m.Address > whole || m.Size > whole-m.Address:
		status = abi.ErrInvalid
	case len(h.windows) == bridge.HostWindows || m.Size > bridge.HostWindowBytes-h.windowBytes:
		status, bound = abi.ErrNoMemory, shmwire.Bound{Of: shmwire.OfClient, Most: bridge.HostWindowBytes}
	case !h.server.windowing(h.user, m.Size):
		status, bound = abi.ErrNoMemory, shmwire.Bound{Of: shmwire.OfUser, Most: shmwire.UserWindowBytes}
	default:
		return h.mapWindow(m, access, fd)
	}
	return shmwire.Refusal(m.Kind, status, bound)
}

// mapWindow makes a window that may be, and is counted already.
func (h *host) mapWindow(m *shmwire.Message, access bridge.WindowAccess, fd int) shmwire.Message {
	w := clientWindow{size: m.Size}
	before := m.Address % uint64(os.Getpagesize())
	prot := unix.PROT_READ
	if access&bridge.WindowWrite != 0 {
		prot |= unix.PROT_WRITE
	}
	var err error
	w.mapping, err = unix.Mmap(fd, int64(m.Address-before), int(before+m.Size), prot, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil { // sealed against writing, or not in pages of this size
		h.server.unwindowed(h.user, w.size)
		return shmwire.Refusal(m.Kind, abi.ErrInvalid, shmwire.Bound{})
	}
	w.HostWindow, err = h.server.fabric.Window(context.Background(), w.mapping[before:], access)
	if err != nil {
		_ = unix.Munmap(w.mapping)
		h.server.unwindowed(h.user, w.size)
		return shmwire.Refusal(m.Kind, statusOf(err), shmwire.Bound{Of: shmwire.OfNode})
	}
	name := w.Remote()
	h.windows[name.Key] = w
	h.windowBytes += w.size
	return shmwire.Message{Kind: m.Kind, Address: name.Key, Size: shmwire.AddressOf(name.Node)}
}

// revoke returns when nothing touches a window of the client any more.
func (h *host) revoke(key uint64) abi.Status {
	w, ok := h.windows[key]
	if !ok {
		return abi.ErrInvalid
	}
	w.Revoke()
	_ = unix.Munmap(w.mapping)
	delete(h.windows, key)
	h.windowBytes -= w.size
	h.server.unwindowed(h.user, w.size)
	return abi.OK
}

// endWindows revokes all windows of the client.
func (h *host) endWindows() {
	for key := range h.windows {
		h.revoke(key)
	}
}

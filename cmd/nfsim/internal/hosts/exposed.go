//go:build cgo

package hosts

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// exposure is memory of a client that others may have if they know the key.
type exposure struct {
	key     uint64
	address uint64 // where the client mapped it
	size    uint64
	file    int
}

// expose keeps memory of the client for others, and takes its descriptor.
func (h *host) expose(m *shmwire.Message, fd int) shmwire.Message {
	if size, ok := h.sizes[m.Address]; !ok || size != m.Size || shmwire.CheckMemory(fd, m.Size) != nil {
		_ = syscall.Close(fd)
		return shmwire.Refusal(m.Kind, abi.ErrInvalid, shmwire.Bound{})
	}
	if len(h.exposed) == shmwire.Exposures {
		h.server.unexpose(h.exposed[0])
		h.exposed = h.exposed[1:]
	}
	var key [8]byte
	_, _ = rand.Read(key[:]) // it does not fail
	l := exposure{key: binary.NativeEndian.Uint64(key[:]), address: m.Address, size: m.Size, file: fd}
	h.exposed = append(h.exposed, l)
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exposed[l.key] = l
	return shmwire.Message{Kind: m.Kind, Address: l.key, Size: l.size}
}

// fetch gives the client memory that it, or another, exposes.
func (h *host) fetch(m *shmwire.Message) (shmwire.Message, *os.File) {
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.exposed[m.Address]
	if !ok {
		return shmwire.Refusal(m.Kind, abi.ErrInvalid, shmwire.Bound{}), nil
	}
	fd, err := unix.FcntlInt(uintptr(l.file), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return shmwire.Refusal(m.Kind, abi.ErrNoMemory, h.noDescriptors()), nil
	}
	return shmwire.Message{Kind: m.Kind, Address: l.key, Size: l.size}, os.NewFile(uintptr(fd), "nfcomms-memory")
}

// unexpose ends an exposure: others keep what they mapped.
func (s *Server) unexpose(l exposure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.exposed, l.key)
	_ = syscall.Close(l.file)
}

// hide ends the exposures of memory that the client unmaps; 0: all.
func (h *host) hide(address uint64) {
	h.exposed = slices.DeleteFunc(h.exposed, func(l exposure) bool {
		if address != 0 && l.address != address {
			return false
		}
		h.server.unexpose(l)
		return true
	})
}

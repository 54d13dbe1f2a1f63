//go:build cgo

package hosts

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// acceptPause is the time until descriptors or memory may be there again.
const acceptPause = 10 * time.Millisecond

// transient reports whether accepting failed for now.
func transient(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// spent reports whether a call failed for want of a descriptor.
func spent(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// noDescriptors is the bound of a request that failed so, which is logged once for each client.
func (h *host) noDescriptors() shmwire.Bound {
	if !h.spent {
		h.log.Warn("client refused: no descriptors left, raise the limit of open files")
	}
	h.spent = true
	return shmwire.Bound{Of: shmwire.OfDevice}
}

// host is a client that is attached.
type host struct {
	server *Server
	conn   *net.UnixConn
	bus    *firmware.Bus
	device Attached
	bell   [2]int // the device's end, and the client's
	pidfd  *os.File
	epoch  uint32
	user   *user // its memory is counted there, too
	own    bool  // it runs as root, or as this process, and connected through no share
	part   firmware.Part
	uid    uint64 // whose it is, from 1 up
	mapped uint64 // bytes
	sizes  map[uint64]uint64
	log    *slog.Logger
	spent  bool // a request was refused for want of a descriptor

	accesses    *accesses               // nil: it did not ask for them
	windows     map[uint64]clientWindow // by their keys
	windowBytes uint64
	exposed     []exposure // the oldest first
}

// greet reads a first message: a hello, or one about a share. False if there is none, or it is of
// another version, which is answered.
func (s *Server) greet(c *net.UnixConn) (shmwire.Message, []int, bool) {
	m, files, err := shmwire.Receive(c, func(m *shmwire.Message) int {
		if m.Kind == shmwire.Share {
			return 1
		}
		return 0
	})
	if errors.Is(err, shmwire.ErrVersion) {
		s.refuse(c, shmwire.Hello, abi.ErrABI) // with our version
	}
	return m, files, err == nil && (m.Kind == shmwire.Hello || m.Kind == shmwire.Share || m.Kind == shmwire.Unshare)
}

func (s *Server) refuse(c *net.UnixConn, k shmwire.Kind, status abi.Status) {
	s.send(c, shmwire.Refusal(k, status, shmwire.Bound{}))
}

// send writes a message that the client may not read.
func (s *Server) send(c *net.UnixConn, m shmwire.Message) {
	_ = c.SetWriteDeadline(time.Now().Add(answerTime))
	_ = shmwire.Send(c, &m)
}

// attach makes a client a host of the device, and says so.
func (s *Server) attach(c *net.UnixConn, o origin, u *user, hello shmwire.Message, log *slog.Logger) (*host, abi.Status) {
	h := &host{
		server: s, conn: c, log: log, user: u, own: o.own, uid: uint64(o.peer.UID) + 1, bell: [2]int{-1, -1}, epoch: max(hello.Epoch+1, 1), sizes: make(map[uint64]uint64),
		windows: make(map[uint64]clientWindow),
	}
	if o.share != nil {
		h.part = o.share.part
	}
	var err error
	if h.bus, err = firmware.NewBus(s.areaSize, 0); err != nil {
		return nil, abi.ErrNoMemory
	}
	h.bus.Master(true)
	bell, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil { // it is [0 0], and those belong to others
		h.end()
		return nil, abi.ErrNoMemory
	}
	h.bell = bell
	if h.pidfd, err = watch(c, o.peer); err != nil {
		h.end()
		if spent(err) {
			return nil, abi.ErrNoMemory
		}
		return nil, abi.ErrClosed
	}
	if status := s.reach(h, hello.Address, hello.Size); status != abi.OK {
		h.end()
		return nil, status
	}
	answer := shmwire.Message{Kind: shmwire.Hello, Epoch: h.epoch, Address: s.placeOf(hello.Address), Size: s.areaSize}
	_ = c.SetWriteDeadline(time.Now().Add(answerTime))
	if err := shmwire.Send(c, &answer, h.bus.AreaFile(), h.bell[1]); err != nil {
		h.end()
		return nil, abi.ErrClosed
	}
	_ = syscall.Close(h.bell[1])
	h.bell[1] = -1
	return h, abi.OK
}

// watch closes the connection when the client's process dies, although some
// descendant of it may hold a copy of its socket.
func watch(c *net.UnixConn, peer fdpass.Peer) (*os.File, error) {
	if int(peer.PID) == os.Getpid() {
		return nil, nil
	}
	f, err := fdpass.ProcessOf(c)
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	go func() {
		died := raw.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0
		}) == nil
		if died {
			_ = c.Close()
		}
	}()
	return f, nil
}

// end releases all that the client held, and returns its counters.
func (h *host) end() firmware.BusStats {
	defer h.bus.Close()
	if h.accesses != nil {
		h.accesses.end()
	}
	h.endWindows()
	h.hide(0)
	if h.device != nil {
		h.device.Detach()
	}
	if h.pidfd != nil {
		_ = h.pidfd.Close()
	}
	for _, fd := range h.bell {
		if fd >= 0 {
			_ = syscall.Close(fd)
		}
	}
	h.bus.UnmapAll()
	h.server.unmapped(h.user, h.mapped)
	return h.bus.Stats()
}

// serve answers requests until the client has closed, or sends an invalid one.
func (h *host) serve() error {
	h.server.wait(h.conn, time.Time{})
	for {
		m, files, err := shmwire.Receive(h.conn, func(m *shmwire.Message) int {
			if m.Kind == shmwire.Map || m.Kind == shmwire.Window || m.Kind == shmwire.Expose {
				return 1
			}
			return 0
		})
		if err != nil && !spent(err) {
			return err
		}
		var answer shmwire.Message
		var with *os.File
		if err != nil {
			answer = shmwire.Refusal(m.Kind, abi.ErrNoMemory, h.noDescriptors())
		} else if answer, with, err = h.answer(&m, files); err != nil {
			return err
		}
		_ = h.conn.SetWriteDeadline(time.Now().Add(answerTime))
		if err := reply(h.conn, &answer, with); err != nil {
			return err
		}
	}
}

// answer does what a request asks for; the request's descriptors end with it. An error is of
// what is no request.
func (h *host) answer(m *shmwire.Message, files []int) (answer shmwire.Message, with *os.File, err error) {
	answer = shmwire.Message{Kind: m.Kind, Address: m.Address, Size: m.Size}
	switch m.Kind {
	case shmwire.Map:
		if status, bound := h.mapMemory(m.Address, m.Size, files[0]); status != abi.OK {
			answer = shmwire.Refusal(m.Kind, status, bound)
		}
		_ = syscall.Close(files[0])
	case shmwire.Window:
		answer = h.openWindow(m, files[0])
		_ = syscall.Close(files[0])
	case shmwire.Expose:
		answer = h.expose(m, files[0])
	case shmwire.Fetch:
		answer, with = h.fetch(m)
	case shmwire.Revoke:
		answer.Status = uint16(h.revoke(m.Address))
	case shmwire.Unmap:
		answer.Status = uint16(h.unmap(m.Address, m.Size))
	case shmwire.Fence:
		h.device.Fence()
	case shmwire.State, shmwire.Route, shmwire.Cut, shmwire.Test, shmwire.Accesses:
		answer, with = h.aboutFabric(m)
	default:
		err = shmwire.ErrForeign
	}
	return answer, with, err
}

// reply sends an answer, with a descriptor that ends here if there is one.
func reply(c *net.UnixConn, answer *shmwire.Message, with *os.File) error {
	if with == nil {
		return shmwire.Send(c, answer)
	}
	defer with.Close()
	return shmwire.Send(c, answer, int(with.Fd()))
}

// mapMemory makes memory of the client reachable, or says what forbids it.
func (h *host) mapMemory(address, size uint64, fd int) (abi.Status, shmwire.Bound) {
	if err := shmwire.CheckMemory(fd, size); err != nil {
		return abi.ErrInvalid, shmwire.Bound{}
	}
	if most := h.server.options.Memory; size > most-h.mapped {
		return abi.ErrNoMemory, shmwire.Bound{Of: shmwire.OfClient, Most: most}
	}
	if !h.server.mapping(h.user, size) {
		return abi.ErrNoMemory, shmwire.Bound{Of: h.user.of, Most: h.user.mappedMost}
	}
	if err := h.bus.Map(firmware.Range{Address: address, Size: size, Read: true, Write: true, File: fd}); err != nil {
		h.server.unmapped(h.user, size)
		for _, refused := range []syscall.Errno{syscall.EINVAL, syscall.EEXIST, syscall.EACCES, syscall.EPERM} { // EPERM: sealed against writing
			if errors.Is(err, refused) {
				return abi.ErrInvalid, shmwire.Bound{}
			}
		}
		if spent(err) {
			return abi.ErrNoMemory, h.noDescriptors()
		}
		return abi.ErrNoMemory, shmwire.Bound{}
	}
	h.mapped += size
	h.sizes[address] = size
	return abi.OK, shmwire.Bound{}
}

// unmap takes it away again; it was mapped as it is unmapped.
func (h *host) unmap(address, size uint64) abi.Status {
	if known, ok := h.sizes[address]; !ok || known != size || h.bus.Unmap(address, size) != nil {
		return abi.ErrInvalid
	}
	delete(h.sizes, address)
	h.hide(address)
	h.mapped -= size
	h.server.unmapped(h.user, size)
	return abi.OK
}

package vhostuser

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// dispatch carries out a request. asked: its reply is value; otherwise a reply,
// if the client needs one, is 0.
func (c *Conn) dispatch(m *message) (value uint64, asked bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Request {
	case GetFeatures:
		return features, true, m.sized(0)
	case GetProtocolFeatures:
		return protocolFeatures, true, m.sized(0)
	case SetOwner:
		err = m.sized(0)
	case SetFeatures:
		err = m.subset(features, FeatureVersion1)
	case SetProtocolFeatures:
		if err = m.subset(protocolFeatures, protocolFeatures); err == nil {
			c.agreed = protocolFeatures
		}
	case SetMemTable:
		err = c.setMemory(m)
	case SetBackendChannel:
		err = c.setChannel(m)
	case SetVringNum, SetVringBase, SetVringEnable, VringKick:
		err = c.vring(m)
	case SetVringAddr:
		err = c.setVringAddr(m)
	default:
		err = malformed("request %d", m.Request)
	}
	return 0, false, err
}

// sized checks the size of a payload.
func (m *message) sized(n int) error {
	if len(m.payload) != n {
		return malformed("request %d of %d bytes, not %d", m.Request, len(m.payload), n)
	}
	return nil
}

// subset checks a set of features: of those offered, and with those needed.
func (m *message) subset(offered, needed uint64) error {
	if err := m.sized(8); err != nil {
		return err
	}
	if v := order.Uint64(m.payload); v&^offered != 0 || v&needed != needed {
		return malformed("request %d with features %#x: want %#x of %#x", m.Request, v, needed, uint64(offered))
	}
	return nil
}

// setMemory takes the table of guest memory. It is mapped, and made the device's
// bus.
func (c *Conn) setMemory(m *message) error {
	if len(m.payload) < memoryTableHeader {
		return malformed("memory table of %d bytes", len(m.payload))
	}
	n := order.Uint32(m.payload)
	p := m.payload[memoryTableHeader:]
	if n == 0 || n > maxRegions || len(p) < int(n)*memoryRegionSize || len(m.Files) != int(n) {
		return malformed("memory table with %d regions in %d bytes and %d descriptors", n, len(p), len(m.Files))
	}
	c.forget()
	c.dev.UnmapAll()
	for i := range int(n) {
		b := p[i*memoryRegionSize:]
		guest, size, user, offset := order.Uint64(b), order.Uint64(b[8:]), order.Uint64(b[16:]), order.Uint64(b[24:])
		if err := c.share(guest, user, size, offset, m.Files[i]); err != nil {
			return err
		}
	}
	return nil
}

// share adds a region. Must hold mu.
func (c *Conn) share(guest, user, size, offset uint64, file int) error {
	// The device checks address, size and offset against each other and the file.
	err := c.dev.MapDMA(vfiouser.Mapping{Address: guest, Size: size, Offset: offset, Read: true, Write: true, File: file})
	if err != nil {
		return malformed("%d bytes of guest memory at %#x: %w", size, guest, err)
	}
	r, err := mapRegion(guest, user, size, offset, file)
	if err != nil {
		return err
	}
	c.memory = append(c.memory, r)
	return nil
}

// setChannel takes the channel on which the server asks the client.
func (c *Conn) setChannel(m *message) error {
	if len(m.Files) != 1 {
		return malformed("%d channels", len(m.Files))
	}
	var st unix.Stat_t
	if err := unix.Fstat(m.Files[0], &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return malformed("a channel that is no socket")
	}
	fd, err := unix.FcntlInt(uintptr(m.Files[0]), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return fmt.Errorf("keep the client's channel: %w", err)
	}
	return c.caller.open(os.NewFile(uintptr(fd), "vhost-user"))
}

// vring carries out the requests that name a queue and a number.
func (c *Conn) vring(m *message) error {
	if err := m.sized(vringStateSize); err != nil {
		return err
	}
	index, v := order.Uint32(m.payload), order.Uint32(m.payload[4:])
	if index >= numQueues {
		return malformed("request %d for queue %d", m.Request, index)
	}
	q := &c.queues[index]
	switch {
	case m.Request == VringKick:
		return c.kick(int(index))
	case q.enabled && m.Request != SetVringEnable:
		return malformed("request %d for a queue at work", m.Request)
	case m.Request == SetVringNum:
		if v == 0 || v > maxQueueSize || v&(v-1) != 0 {
			return malformed("queue of %d descriptors", v)
		}
		*q = queue{size: uint16(v)}
	case m.Request == SetVringBase:
		q.taken, q.given = uint16(v), uint16(v)
	case v == 0:
		q.enabled = false
	case !q.ready || c.agreed == 0 || !c.caller.ready():
		return malformed("queue %d enabled before it was set up", index)
	default:
		q.enabled = true
		return c.kick(int(index))
	}
	return nil
}

// setVringAddr says where a queue lies: all of it in guest memory.
func (c *Conn) setVringAddr(m *message) error {
	if err := m.sized(vringAddrSize); err != nil {
		return err
	}
	index, flags := order.Uint32(m.payload), order.Uint32(m.payload[4:])
	if index >= numQueues || flags != 0 || c.queues[index].size == 0 || c.queues[index].enabled {
		return malformed("addresses of queue %d with flags %#x", index, flags)
	}
	q := &c.queues[index]
	for _, part := range []struct {
		to       *[]byte
		at, size int
	}{
		{&q.desc, 8, descSize * int(q.size)}, {&q.used, 16, 4 + 8*int(q.size)}, {&q.avail, 24, 4 + 2*int(q.size)},
	} {
		b, err := c.memory.find(order.Uint64(m.payload[part.at:]), uint64(part.size), byUser)
		if err != nil {
			return fmt.Errorf("queue %d: %w", index, err)
		}
		*part.to = b
	}
	q.ready = true
	return nil
}

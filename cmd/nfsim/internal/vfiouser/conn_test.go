package vfiouser_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// TestSilentClient: a client that says nothing, or half of something, leaves the device to others.
func TestSilentClient(t *testing.T) {
	for _, said := range []string{"", "half a hea"} {
		client, server, err := Pair()
		require.NoError(t, err)
		defer client.Close()
		_, err = client.Write([]byte(said))
		require.NoError(t, err)
		conn := NewConn(server, newMemory(), quiet)
		conn.Greeting = time.Millisecond
		require.ErrorIs(t, conn.Serve(), os.ErrDeadlineExceeded, "%q", said)
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload []byte
		want    error
		answer  string // what the reply contains
	}{
		{"as QEMU", Words(uint16(0), uint16(0), Hello), nil, `"max_msg_fds":16,"max_data_xfer_size":1048576,"max_dma_maps":65535`},
		{"as libvfio-user", Words(uint16(0), uint16(1), `{"capabilities":{"max_msg_fds":64}}`), nil, `{"capabilities":{"max_msg_fds":16}}`},
		{"newer minor", Words(uint16(0), uint16(9)), nil, ""},
		{"little room", Words(uint16(0), uint16(0), `{ }`), nil, `{}`},
		{"no room", Words(uint16(0), uint16(0), ``), syscall.EINVAL, ""},
		{"other major", Words(uint16(1), uint16(0), Hello), syscall.EPROTONOSUPPORT, ""},
		{"nothing", nil, syscall.EINVAL, ""},
		{"half", Words(uint16(0)), syscall.EINVAL, ""},
		{"no end", Words(uint16(0), uint16(0), []byte(`{}`)), syscall.EINVAL, ""},
		{"two strings", Words(uint16(0), uint16(0), "{}\x00{}"), syscall.EINVAL, ""},
		{"no JSON", Words(uint16(0), uint16(0), "hello"), syscall.EINVAL, ""},
		{"no object", Words(uint16(0), uint16(0), "[]"), syscall.EINVAL, ""},
		{"negative", Words(uint16(0), uint16(0), `{"capabilities":{"max_msg_fds":-1}}`), syscall.EINVAL, ""},
		{"no transfers", Words(uint16(0), uint16(0), `{"capabilities":{"max_data_xfer_size":0}}`), syscall.EINVAL, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, newMemory(), nil)
			defer r.hangUp(t)
			reply, err := r.Ask(Version, c.payload)
			require.ErrorIs(t, err, c.want)
			if c.want != nil {
				require.Empty(t, reply.Payload)
				_, err = r.Version() // the next try may be better
				require.NoError(t, err)
				return
			}
			require.LessOrEqual(t, len(reply.Payload), max(4, len(c.payload)), "longer than the question")
			require.Contains(t, string(reply.Payload[4:]), c.answer)
			if text := strings.TrimRight(string(reply.Payload[4:]), "\x00"); text != "" {
				require.True(t, json.Valid([]byte(text)), text)
			}
			_, err = r.Version()
			require.ErrorIs(t, err, syscall.EINVAL, "a second version")
		})
	}
}

// TestNothingBeforeVersion: every other command is refused before it.
func TestNothingBeforeVersion(t *testing.T) {
	r := newRig(t, newMemory(), nil)
	defer r.hangUp(t)
	for cmd := DMAMap; cmd <= MigDataWrite+2; cmd++ {
		_, err := r.Ask(cmd, make([]byte, 64))
		require.ErrorIs(t, err, syscall.EINVAL, "command %d", cmd)
	}
	require.Empty(t, r.dev.heard())
}

// TestCommands: the requests of a good client, the calls that the device gets, and the
// replies.
func TestCommands(t *testing.T) {
	r := greeted(t)
	ask := func(cmd Command, payload []byte, files ...int) []byte {
		t.Helper()
		reply, err := r.Ask(cmd, payload, files...)
		require.NoError(t, err)
		return reply.Payload
	}
	heard := func(want ...string) {
		t.Helper()
		require.Equal(t, want, r.dev.heard())
	}
	fds := files(t, 3)
	require.Equal(t, Words(uint32(16), uint32(3), uint32(9), uint32(5)), ask(DeviceInfo, Words(uint32(16), uint32(0), uint32(0), uint32(0))))
	for index, want := range map[uint32][]byte{
		0: Words(uint32(32), uint32(3), uint32(0), uint32(0), uint64(4096), uint64(0)),
		1: Words(uint32(32), uint32(0), uint32(1), uint32(0), uint64(0), uint64(0)),
		7: Words(uint32(32), uint32(3), uint32(7), uint32(0), uint64(256), uint64(0)),
		8: Words(uint32(32), uint32(0), uint32(8), uint32(0), uint64(0), uint64(0)),
	} {
		require.Equal(t, want, ask(RegionInfo, Words(uint32(32), uint32(0), index, uint32(0), uint64(0), uint64(0))))
	}
	for index, count := range map[uint32][2]uint32{0: {0, 0}, 1: {0, 0}, 2: {1, 3}} {
		require.Equal(t, Words(uint32(16), count[0], index, count[1]), ask(IRQInfo, Words(uint32(16), uint32(0), index, uint32(0))))
	}
	require.Empty(t, ask(DMAMap, Words(uint32(32), uint32(3), uint64(0x1000), uint64(0x8000), uint64(0x2000)), fds[0]))
	heard("map 0x8000+0x2000 at 0x1000 read true write true file true")
	require.Empty(t, ask(DMAMap, Words(uint32(32), uint32(1), uint64(0), uint64(0xa000), uint64(0x1000))))
	heard("map 0xa000+0x1000 at 0x0 read true write false file false")
	unmap := Words(uint32(24), uint32(0), uint64(0x8000), uint64(0x2000))
	require.Equal(t, unmap, ask(DMAUnmap, unmap))
	heard("unmap 0x8000+0x2000")
	require.NoError(t, r.UnmapAll())
	heard("unmap all")
	require.Equal(t, Words(uint64(8), uint32(2), uint32(4)), ask(RegionWrite, Words(uint64(8), uint32(2), uint32(4), uint32(0x01020304))))
	heard("write 2 0x8 4")
	require.Equal(t, Words(uint64(9), uint32(2), uint32(2), []byte{3, 2}), ask(RegionRead, Words(uint64(9), uint32(2), uint32(2))))
	heard("read 2 0x9 2")
	require.NoError(t, r.SetIRQs(IRQEventfd, 0, 3, nil, fds...))
	heard("vector 0 file true", "vector 1 file true", "vector 2 file true")
	require.NoError(t, r.SetIRQs(IRQEventfd, 1, 1, nil))
	heard("vector 1 file false")
	require.NoError(t, r.SetIRQs(IRQNone, 1, 2, nil))
	heard("fire 1", "fire 2")
	require.NoError(t, r.SetIRQs(IRQBool, 0, 3, []byte{1, 0, 1}))
	heard("fire 0", "fire 2")
	require.NoError(t, r.SetIRQs(IRQBool, 0, 0, nil))
	require.NoError(t, r.SetIRQs(IRQNone, 0, 0, nil))
	heard("vector 0 file false", "vector 1 file false", "vector 2 file false")
	require.Empty(t, ask(SetIRQs, Words(uint32(20), uint32(IRQNone), uint32(0), uint32(0), uint32(0))))
	require.NoError(t, r.Reset())
	heard("reset")
	require.Zero(t, r.conn.Stats().Refused)
}

// TestRefusals: each message is wrong in one thing. It is answered with an
// errno, the device gets no call, and the connection stays open.
func TestRefusals(t *testing.T) {
	r := greeted(t)
	fds := files(t, 4)
	region := func(offset uint64, index, count uint32, data ...byte) []byte {
		return Words(offset, index, count, data)
	}
	irqs := func(flags, index, start, count uint32) []byte { return Words(uint32(20), flags, index, start, count) }
	for _, c := range []struct {
		name    string
		cmd     Command
		payload []byte
		files   []int
		want    syscall.Errno
	}{
		{"map: short", DMAMap, make([]byte, 31), nil, syscall.EINVAL},
		{"map: empty", DMAMap, nil, nil, syscall.EINVAL},
		{"map: argsz", DMAMap, Words(uint32(31), uint32(3), uint64(0), uint64(0), uint64(4096)), nil, syscall.EINVAL},
		{"map: flags", DMAMap, Words(uint32(32), uint32(7), uint64(0), uint64(0), uint64(4096)), nil, syscall.EINVAL},
		{"map: two files", DMAMap, Words(uint32(32), uint32(3), uint64(0), uint64(0), uint64(4096)), fds[:2], syscall.EINVAL},
		{"map: more", DMAMap, append(Words(uint32(32), uint32(3), uint64(0), uint64(0), uint64(4096)), 0), nil, syscall.EINVAL},
		{"unmap: short", DMAUnmap, make([]byte, 23), nil, syscall.EINVAL},
		{"unmap: flags", DMAUnmap, Words(uint32(24), uint32(1), uint64(0), uint64(4096)), nil, syscall.EINVAL},
		{"unmap: all of something", DMAUnmap, Words(uint32(24), uint32(2), uint64(0), uint64(4096)), nil, syscall.EINVAL},
		{"unmap: a file", DMAUnmap, Words(uint32(24), uint32(0), uint64(0), uint64(4096)), fds[:1], syscall.EINVAL},
		{"info: short", DeviceInfo, make([]byte, 15), nil, syscall.EINVAL},
		{"info: argsz", DeviceInfo, make([]byte, 16), nil, syscall.EINVAL},
		{"region: short", RegionInfo, make([]byte, 8), nil, syscall.EINVAL},
		{"region: index", RegionInfo, Words(uint32(32), uint32(0), uint32(9), uint32(0), uint64(0), uint64(0)), nil, syscall.EINVAL},
		{"irq: short", IRQInfo, make([]byte, 15), nil, syscall.EINVAL},
		{"irq: error kind", IRQInfo, Words(uint32(16), uint32(0), uint32(3), uint32(0)), nil, syscall.EINVAL},
		{"irq: request kind", IRQInfo, Words(uint32(16), uint32(0), uint32(4), uint32(0)), nil, syscall.EINVAL},
		{"irqs: short", SetIRQs, make([]byte, 19), nil, syscall.EINVAL},
		{"irqs: kind", SetIRQs, irqs(IRQEventfd, 0, 0, 1), nil, syscall.EINVAL},
		{"irqs: highest kind", SetIRQs, irqs(IRQNone, 1<<31, 0, 0), nil, syscall.EINVAL},
		{"irqs: start", SetIRQs, irqs(IRQEventfd, 2, 4, 0), nil, syscall.EINVAL},
		{"irqs: count", SetIRQs, irqs(IRQEventfd, 2, 1, 3), nil, syscall.EINVAL},
		{"irqs: overflow", SetIRQs, irqs(IRQEventfd, 2, 2, ^uint32(0)), nil, syscall.EINVAL},
		{"irqs: too few files", SetIRQs, irqs(IRQEventfd, 2, 0, 3), fds[:2], syscall.EINVAL},
		{"irqs: too many files", SetIRQs, irqs(IRQEventfd, 2, 0, 2), fds[:3], syscall.EINVAL},
		{"irqs: files for none", SetIRQs, irqs(IRQNone, 2, 0, 1), fds[:1], syscall.EINVAL},
		{"irqs: mask", SetIRQs, irqs(0x09, 2, 0, 1), nil, syscall.EINVAL},
		{"irqs: two kinds of data", SetIRQs, irqs(0x27, 2, 0, 1), nil, syscall.EINVAL},
		{"irqs: no action", SetIRQs, irqs(0x04, 2, 0, 1), nil, syscall.EINVAL},
		{"irqs: bools missing", SetIRQs, irqs(IRQBool, 2, 0, 2), nil, syscall.EINVAL},
		{"read: short", RegionRead, make([]byte, 15), nil, syscall.EINVAL},
		{"read: nothing", RegionRead, region(0, 0, 0), nil, syscall.EINVAL},
		{"read: index", RegionRead, region(0, 9, 4), nil, syscall.EINVAL},
		{"read: no region", RegionRead, region(0, 1, 4), nil, syscall.EINVAL},
		{"read: end", RegionRead, region(4093, 0, 4), nil, syscall.EINVAL},
		{"read: past", RegionRead, region(4097, 0, 1), nil, syscall.EINVAL},
		{"read: far past", RegionRead, region(^uint64(0), 0, 4), nil, syscall.EINVAL},
		{"read: huge", RegionRead, region(0, 0, ^uint32(0)), nil, syscall.EINVAL},
		{"read: data", RegionRead, region(0, 0, 4, 1), nil, syscall.EINVAL},
		{"read: a file", RegionRead, region(0, 0, 4), fds[:1], syscall.EINVAL},
		{"write: no data", RegionWrite, region(0, 0, 4), nil, syscall.EINVAL},
		{"write: less", RegionWrite, region(0, 0, 4, 1, 2, 3), nil, syscall.EINVAL},
		{"write: more", RegionWrite, region(0, 0, 4, 1, 2, 3, 4, 5), nil, syscall.EINVAL},
		{"write: end", RegionWrite, region(254, 7, 4, 1, 2, 3, 4), nil, syscall.EINVAL},
		{"reset: payload", DeviceReset, []byte{0}, nil, syscall.EINVAL},
		{"descriptors of a region", RegionIOFDs, make([]byte, 16), nil, syscall.EOPNOTSUPP},
		{"server's read", DMARead, make([]byte, 16), nil, syscall.EOPNOTSUPP},
		{"server's write", DMAWrite, make([]byte, 16), nil, syscall.EOPNOTSUPP},
		{"dirty pages", DirtyPages, make([]byte, 16), nil, syscall.EOPNOTSUPP},
		{"several writes", RegionWriteMult, make([]byte, 32), nil, syscall.EOPNOTSUPP},
		{"feature", DeviceFeature, make([]byte, 8), nil, syscall.EOPNOTSUPP},
		{"migration read", MigDataRead, make([]byte, 8), nil, syscall.EOPNOTSUPP},
		{"migration write", MigDataWrite, make([]byte, 8), nil, syscall.EOPNOTSUPP},
		{"command 0", 0, nil, nil, syscall.EOPNOTSUPP},
		{"command 65535", 65535, nil, nil, syscall.EOPNOTSUPP},
		{"17 files", SetIRQs, irqs(IRQEventfd, 2, 0, 3), repeat(fds[0], 17), syscall.EINVAL},
	} {
		before := r.conn.Stats()
		reply, err := r.Ask(c.cmd, c.payload, c.files...)
		assert.Equal(t, error(c.want), err, c.name)
		assert.Equal(t, Header{ID: reply.ID, Command: c.cmd, Size: HeaderSize, Flags: FlagReply | FlagError,
			Errno: uint32(c.want)}, reply.Header, c.name)
		assert.Empty(t, r.dev.heard(), c.name)
		assert.Equal(t, before.Refused+1, r.conn.Stats().Refused, c.name)
	}
	require.NoError(t, r.Reset(), "the connection goes on")
}

func repeat(fd, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = fd
	}
	return all
}

// TestFlags: what a command's header may not say.
func TestFlags(t *testing.T) {
	r := greeted(t)
	for _, flags := range []uint32{2, 3, 0xf, FlagError, 1 << 6, 1 << 31} {
		id, reply := r.Expect()
		require.NoError(t, r.Send(Header{ID: id, Command: DeviceReset, Flags: flags}, nil, nil))
		got := <-reply
		require.Equal(t, uint32(syscall.EINVAL), got.Errno, "flags %#x", flags)
	}
	// A reply that nobody waits for is no command: it has no reply.
	require.NoError(t, r.Send(Header{ID: 7, Command: DMARead, Flags: FlagReply}, nil, nil))
	require.NoError(t, r.Reset())
	require.Equal(t, []string{"reset"}, r.dev.heard())
}

// TestDeviceErrors: the errno of the device reaches the client; others are EIO.
func TestDeviceErrors(t *testing.T) {
	r := greeted(t)
	for _, c := range []struct {
		err  error
		want syscall.Errno
	}{
		{fmt.Errorf("wrapped: %w", syscall.EEXIST), syscall.EEXIST},
		{os.ErrClosed, syscall.EIO},
		{syscall.Errno(0), syscall.EIO},
	} {
		for _, call := range []func() error{
			func() error { return r.MapDMA(0, 4096, 0, Readable, -1) },
			func() error { return r.UnmapDMA(0, 4096) },
			func() error { return r.Read(0, 0, make([]byte, 4)) },
			func() error { return r.Write(0, 0, make([]byte, 4)) },
			func() error { return r.SetIRQs(IRQEventfd, 0, 1, nil) },
			func() error { return r.SetIRQs(IRQNone, 0, 0, nil) },
			r.Reset,
		} {
			r.dev.failNext(c.err)
			require.Equal(t, error(c.want), call())
		}
	}
}

// TestPosted: what wants no reply gets none, right or wrong, and is in order.
func TestPosted(t *testing.T) {
	r := greeted(t)
	for i := range 500 {
		require.NoError(t, r.PostWrite(2, uint64(i)*8, Words(uint64(i))))
	}
	require.NoError(t, r.PostWrite(2, 1<<40, []byte{1})) // refused, in silence
	require.NoError(t, r.Post(Command(99), nil))
	var b [8]byte
	require.NoError(t, r.Read(2, 499*8, b[:]))
	require.Equal(t, Words(uint64(499)), b[:])
	st := r.conn.Stats()
	require.EqualValues(t, 502, st.Posted)
	require.EqualValues(t, 2, st.Refused)
	require.EqualValues(t, 504, st.Messages) // the version, and the read
}

// TestBadSize: a size that cannot be ends the connection, after an answer.
func TestBadSize(t *testing.T) {
	for _, size := range []uint32{0, 1, HeaderSize - 1, MaxMessage + 1, 1 << 31, ^uint32(0)} {
		r := newRig(t, newMemory(), nil)
		id, reply := r.Expect()
		b := make([]byte, HeaderSize)
		Header{ID: id, Command: DeviceReset, Size: size}.Put(b)
		require.NoError(t, r.SendRaw(b, nil))
		got, ok := <-reply
		require.True(t, ok)
		require.Equal(t, uint32(syscall.EINVAL), got.Errno, "size %d", size)
		require.ErrorContains(t, <-r.ends, fmt.Sprintf("message of %d bytes", size))
		require.NoError(t, r.Close())
	}
}

// TestPieces: a message may arrive byte by byte, its descriptors with any of them.
func TestPieces(t *testing.T) {
	for _, at := range []int{0, 3, HeaderSize, HeaderSize + 1, HeaderSize + 31} {
		r := greeted(t)
		before := descriptors(t)
		b := make([]byte, HeaderSize)
		id, reply := r.Expect()
		Header{ID: id, Command: DMAMap, Size: HeaderSize + 32}.Put(b)
		b = append(b, Words(uint32(32), uint32(3), uint64(0), uint64(0x8000), uint64(0x1000))...)
		for i := range b {
			var fds []int
			if i == at {
				fds = files(t, 1)
				before++
			}
			require.NoError(t, r.SendRaw(b[i:i+1], fds))
		}
		got := <-reply
		require.Zero(t, got.Errno)
		require.Equal(t, []string{"map 0x8000+0x1000 at 0x0 read true write true file true"}, r.dev.heard())
		require.Equal(t, before, descriptors(t), "the server kept a descriptor")
	}
}

// TestDescriptors: all are closed, also those of messages that are refused, cut
// off, or have too many.
func TestDescriptors(t *testing.T) {
	fds := files(t, 1)
	before := descriptors(t)
	for _, n := range []int{1, 16, 17, 100, 253} {
		r := newRig(t, newMemory(), nil)
		_, err := r.Ask(DeviceReset, nil, repeat(fds[0], n)...) // before the version
		require.ErrorIs(t, err, syscall.EINVAL)
		_, err = r.Version()
		require.NoError(t, err)
		_, err = r.Ask(SetIRQs, Words(uint32(20), uint32(IRQEventfd), uint32(2), uint32(0), uint32(3)), repeat(fds[0], n)...)
		require.ErrorIs(t, err, syscall.EINVAL)
		half := make([]byte, HeaderSize)
		Header{Command: DMAMap, Size: HeaderSize + 32}.Put(half)
		require.NoError(t, r.SendRaw(half, repeat(fds[0], n))) // and no more
		require.NoError(t, r.Close())
		require.ErrorIs(t, <-r.ends, io.ErrUnexpectedEOF)
		require.Equal(t, before, descriptors(t), "%d descriptors", n)
	}
}

// TestRegionFile: the info of a region that may be mapped has its file with it.
func TestRegionFile(t *testing.T) {
	fds := files(t, 1)
	dev := newMemory()
	dev.file = fds[0]
	r := newRig(t, dev, nil)
	_, err := r.Version()
	require.NoError(t, err)
	size, flags, file, err := r.Region(2)
	require.NoError(t, err)
	require.EqualValues(t, 8192, size)
	require.EqualValues(t, 7, flags)
	require.GreaterOrEqual(t, file, 0)
	require.NoError(t, syscall.Close(file))
	r.hangUp(t)
}

// TestClientGoes: the end of the client is no fault of the server, wherever it
// is; Close ends a server whose client stays.
func TestClientGoes(t *testing.T) {
	for n := range HeaderSize {
		r := newRig(t, newMemory(), nil)
		require.NoError(t, r.SendRaw(make([]byte, n), nil))
		require.NoError(t, r.Close())
		if err := <-r.ends; n > 0 {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		} else {
			require.NoError(t, err)
		}
	}
	r := newRig(t, newMemory(), nil)
	require.NoError(t, r.conn.Close())
	require.ErrorIs(t, <-r.ends, net.ErrClosed)
	require.NoError(t, r.Close())
}

// TestDeafClient: a client that sends and does not read is stopped by its own
// socket, and Close ends the server all the same.
func TestDeafClient(t *testing.T) {
	client, server, err := Pair()
	require.NoError(t, err)
	defer client.Close()
	conn := NewConn(server, newMemory(), quiet)
	ends := make(chan error, 1)
	go func() { ends <- conn.Serve() }()
	b := make([]byte, HeaderSize)
	Header{Command: DeviceReset, Size: HeaderSize}.Put(b)
	require.NoError(t, client.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
	for err == nil {
		_, err = client.Write(b)
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, conn.Close())
	require.ErrorIs(t, <-ends, net.ErrClosed)
}

package vfiouser_test

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// strict is a Device that fails the test if a call is not as its contract says.
type strict struct {
	*memory
	t testing.TB
}

func (d *strict) access(index int, offset uint64, p []byte) {
	size := d.Region(index).Size
	require.NotEmpty(d.t, p)
	require.LessOrEqual(d.t, uint64(len(p)), uint64(MaxTransfer))
	require.True(d.t, offset <= size && uint64(len(p)) <= size-offset, "%d bytes at %#x of region %d", len(p), offset, index)
}

func (d *strict) ReadRegion(index int, offset uint64, p []byte) error {
	d.access(index, offset, p)
	return d.memory.ReadRegion(index, offset, p)
}

func (d *strict) WriteRegion(index int, offset uint64, p []byte) error {
	d.access(index, offset, p)
	return d.memory.WriteRegion(index, offset, p)
}

func (d *strict) MapDMA(m Mapping) error {
	d.open(m.File)
	return d.memory.MapDMA(m)
}

func (d *strict) AssignIRQ(vector, file int) error {
	d.open(file)
	d.vector(vector)
	return d.memory.AssignIRQ(vector, file)
}

func (d *strict) TriggerIRQ(vector int) { d.vector(vector) }

func (d *strict) vector(v int) { require.True(d.t, v >= 0 && v < d.Vectors(), "vector %d", v) }

func (d *strict) open(file int) {
	if file >= 0 {
		var st syscall.Stat_t
		require.NoError(d.t, syscall.Fstat(file, &st), "a descriptor that is closed")
	}
}

// frame makes one message with a right size.
func frame(cmd Command, flags uint32, payload ...any) []byte {
	body := Words(payload...)
	b := make([]byte, HeaderSize)
	Header{ID: 1, Command: cmd, Size: uint32(HeaderSize + len(body)), Flags: flags}.Put(b)
	return append(b, body...)
}

// FuzzStream sends any bytes, in two pieces with descriptors between them. The
// server answers or hangs up, keeps no descriptor, and ends with its client.
func FuzzStream(f *testing.F) {
	hello := frame(Version, 0, uint16(0), uint16(0), Hello)
	for _, m := range [][]byte{
		{}, hello, hello[:20],
		frame(DMAMap, 0, uint32(32), uint32(3), uint64(0), uint64(1<<20), uint64(1<<20)),
		frame(DMAUnmap, 0, uint32(24), uint32(2), uint64(0), uint64(0)),
		frame(DeviceInfo, 0, uint32(16), uint32(0), uint32(0), uint32(0)),
		frame(RegionInfo, 0, uint32(32), uint32(0), uint32(2), uint32(0), uint64(0), uint64(0)),
		frame(IRQInfo, 0, uint32(16), uint32(0), uint32(2), uint32(0)),
		frame(SetIRQs, 0, uint32(20), uint32(0x24), uint32(2), uint32(0), uint32(1)),
		frame(RegionRead, 0, uint64(0), uint32(7), uint32(64)),
		frame(RegionWrite, FlagNoReply, uint64(0), uint32(2), uint32(4), uint32(1)),
		frame(DeviceReset, 0), frame(DirtyPages, 0, uint64(0)), frame(DMARead, FlagReply, uint64(0), uint64(0)),
		frame(Command(999), FlagError|FlagNoReply),
	} {
		f.Add(m, uint16(len(m)/2), uint8(1), true)
		f.Add(append(append([]byte{}, m...), m...), uint16(len(m)), uint8(3), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, n uint8, greet bool) {
		fds := files(t, 1)
		before := descriptors(t)
		client, server, err := Pair()
		require.NoError(t, err)
		conn := NewConn(server, &strict{newMemory(), t}, quiet)
		ends := make(chan error, 1)
		go func() { ends <- conn.Serve() }()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			for {
				r, err := Read(client)
				for _, fd := range r.Files {
					_ = syscall.Close(fd)
				}
				if err != nil {
					return
				}
			}
		}()
		if greet {
			data = append(append([]byte{}, hello...), data...)
		}
		at := min(int(cut), len(data))
		_, _, _ = client.WriteMsgUnix(data[:at], nil, nil) // the server may have hung up
		_, _, _ = client.WriteMsgUnix(data[at:], syscall.UnixRights(repeat(fds[0], int(n%20)+1)...), nil)
		require.NoError(t, client.CloseWrite())
		select {
		case <-ends:
		case <-time.After(time.Minute):
			require.FailNow(t, "the server does not end")
		}
		<-drained
		require.NoError(t, client.Close())
		require.Equal(t, before, descriptors(t), "descriptors")
	})
}

// FuzzMessages sends right headers with payloads of any kind: every command is
// answered, once, with its id.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{2, 32, 1, 3, 8, 24, 9, 16, 10, 20, 13, 0})
	f.Add(append([]byte{7, 16}, Words(uint32(16), uint32(0), uint32(2), uint32(0))...))
	f.Add(append([]byte{9, 16}, Words(uint64(0), uint32(7), uint32(4))...))
	f.Add(append([]byte{10, 20}, Words(uint64(0), uint32(0), uint32(4), uint32(7))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, newMemory(), nil)
		_, err := r.Version()
		require.NoError(t, err)
		for len(data) >= 2 {
			cmd, n := Command(data[0]%24), min(int(data[1]), len(data)-2)
			payload := data[2 : 2+n]
			data = data[2+n:]
			reply, err := r.Ask(cmd, payload)
			require.NotErrorIs(t, err, ErrGone)
			require.NotErrorIs(t, err, io.EOF)
			require.Equal(t, cmd, reply.Command)
			if err != nil {
				require.Empty(t, reply.Payload)
				require.NotZero(t, reply.Errno)
			}
		}
		r.hangUp(t)
	})
}

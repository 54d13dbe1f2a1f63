package vhostuser_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostuser"
)

// cut empties the file of guest memory, of which nothing may be touched here
// any more.
func (r *rig) cut(t *testing.T) { require.NoError(t, unix.Ftruncate(r.File(), 0)) }

// over reports that the server ended the connection.
func over(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// finish hangs up: whatever was sent, the server ends in peace, with ErrMalformed
// or because the last message has no end.
func (r *rig) finish(t *testing.T) {
	require.NoError(t, r.Close())
	if err := <-r.ends; err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		require.ErrorIs(t, err, ErrMalformed)
	}
	r.dev.close()
}

// FuzzMessages sends any bytes, at once or after a handshake, with descriptors.
func FuzzMessages(f *testing.F) {
	for _, m := range [][]byte{
		{}, Message(GetFeatures, 1), Message(SetFeatures, 9, uint64(1<<32)), Message(SetProtocolFeatures, 1, uint64(0x4028)),
		Message(SetMemTable, 1, Table()...), Message(SetVringAddr, 1, Place(1)...), Message(SetBackendChannel, 9),
		Message(SetVringNum, 1, uint32(1), uint32(8)), Message(SetVringEnable, 1, uint32(0), uint32(0)),
		Message(VringKick, 9, uint32(0), uint32(0)), Message(SetVringBase, 1, uint32(1), uint32(65535)),
	} {
		f.Add(m, uint8(1), true)
		f.Add(append(append([]byte{}, m...), m...), uint8(0), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint8, handshake bool) {
		before := descriptors(t)
		r := newRig(t)
		if handshake {
			require.NoError(t, r.Setup())
		}
		var files []int
		for i := range int(n % 20) {
			files = append(files, []int{r.File(), r.Channel()}[i%2])
		}
		if len(data) > 0 {
			_ = r.Send(data, files...) // the server may have hung up
		}
		r.finish(t)
		require.Equal(t, before, descriptors(t), "descriptors")
	})
}

// FuzzQueues puts any bytes into the rings and the buffers of both queues.
func FuzzQueues(f *testing.F) {
	f.Add([]byte{}, Operation(Load, 0, 4, 0, nil), uint16(1), uint8(0))
	f.Add([]byte{0, 0, 0x10, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0}, Operation(Store, 2, 4, 0, []byte{1, 2, 3, 4}), uint16(3), uint8(1))
	f.Add([]byte{0, 0x20, 0x10, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0}, Operation(Set, 1, 9, 0, []byte{0}), uint16(1), uint8(2))
	f.Fuzz(func(t *testing.T, ring, operation []byte, index uint16, fire uint8) {
		r := newRig(t)
		require.NoError(t, r.Setup())
		require.NoError(t, r.Write(ConfigWrite, 0, 4, []byte{2, 0}))
		r.enable(t, 0, 5)
		for _, q := range []int{Interrupts, Commands} {
			at, b := r.Buffer(q, 0)
			copy(b, operation)
			r.Describe(q, 0, at, uint32(min(len(operation), BufferMax)), 0, 1)
			copy(r.Memory[q*4096:], ring)
			r.Publish(q, index)
			if fire&1 != 0 {
				r.dev.fire(0)
			}
			if err := r.Kick(q); err != nil {
				require.True(t, over(err), "%v", err)
				break
			}
		}
		r.finish(t)
	})
}

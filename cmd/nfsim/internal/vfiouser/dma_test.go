package vfiouser_test

import (
	"bytes"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// ram is client memory from address 0.
type ram struct {
	mu sync.Mutex
	b  []byte
}

func (r *ram) at(p []byte, address uint64) ([]byte, error) {
	if address > uint64(len(r.b)) || uint64(len(p)) > uint64(len(r.b))-address {
		return nil, syscall.EFAULT
	}
	return r.b[address:][:len(p)], nil
}

func (r *ram) ReadAt(p []byte, address uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := r.at(p, address)
	copy(p, b)
	return err
}

func (r *ram) WriteAt(p []byte, address uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := r.at(p, address)
	copy(b, p)
	return err
}

// TestDMAMessages moves bytes both ways, in as many messages as it takes, also
// while the device is at work on a command.
func TestDMAMessages(t *testing.T) {
	dev := newMemory()
	dev.wait = make(chan struct{})
	memory := &ram{b: make([]byte, 3<<20)}
	r := newRig(t, dev, memory)
	_, err := r.Version()
	require.NoError(t, err)
	unmapped := make(chan error)
	go func() { unmapped <- r.UnmapDMA(0, 4096) }()
	out := bytes.Repeat([]byte("nfcomms!"), 2<<20/8+1)
	require.NoError(t, r.conn.WriteDMA(7, out))
	in := make([]byte, len(out))
	require.NoError(t, r.conn.ReadDMA(7, in))
	require.True(t, bytes.Equal(out, in))
	require.ErrorIs(t, r.conn.ReadDMA(3<<20-1, in[:2]), syscall.EFAULT)
	require.ErrorIs(t, r.conn.WriteDMA(1<<60, in[:2]), syscall.EFAULT)
	require.NoError(t, r.conn.ReadDMA(0, nil))
	close(dev.wait)
	require.NoError(t, <-unmapped)
	r.hangUp(t)
	require.ErrorIs(t, r.conn.ReadDMA(0, in[:1]), syscall.ENOTCONN)
}

// TestSmallClient: no message carries more than the client said it takes.
func TestSmallClient(t *testing.T) {
	client, server, err := Pair()
	require.NoError(t, err)
	conn := NewConn(server, newMemory(), quiet)
	ends := make(chan error, 1)
	go func() { ends <- conn.Serve() }()
	b := make([]byte, HeaderSize)
	hello := Words(uint16(0), uint16(0), `{"capabilities":{"max_data_xfer_size":100}}`)
	Header{Command: Version, Size: HeaderSize + uint32(len(hello))}.Put(b)
	_, err = client.Write(append(b, hello...))
	require.NoError(t, err)
	_, err = Read(client)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- conn.WriteDMA(0, make([]byte, 250)) }()
	for _, want := range []int{100, 100, 50} {
		m, err := Read(client)
		require.NoError(t, err)
		require.Len(t, m.Payload, 16+want)
		Header{ID: m.ID, Command: DMAWrite, Size: HeaderSize + 16, Flags: FlagReply}.Put(b[:HeaderSize])
		_, err = client.Write(append(b[:HeaderSize:HeaderSize], m.Payload[:16]...))
		require.NoError(t, err)
	}
	require.NoError(t, <-done)
	require.NoError(t, client.Close())
	require.NoError(t, <-ends)
}

// TestBadDMAReplies: an answer that is not one to the question is an error.
func TestBadDMAReplies(t *testing.T) {
	for _, c := range []struct {
		name    string
		h       Header
		payload []byte
		want    syscall.Errno
	}{
		{"short", Header{Command: DMARead}, make([]byte, 15), syscall.EPROTO},
		{"empty", Header{Command: DMARead}, nil, syscall.EPROTO},
		{"less data", Header{Command: DMARead}, Words(uint64(64), uint64(8), make([]byte, 7)), syscall.EPROTO},
		{"more data", Header{Command: DMARead}, Words(uint64(64), uint64(8), make([]byte, 9)), syscall.EPROTO},
		{"other count", Header{Command: DMARead}, Words(uint64(64), uint64(9), make([]byte, 8)), syscall.EPROTO},
		{"other address", Header{Command: DMARead}, Words(uint64(65), uint64(8), make([]byte, 8)), syscall.EPROTO},
		{"other command", Header{Command: DMAWrite}, Words(uint64(64), uint64(8), make([]byte, 8)), syscall.EPROTO},
		{"refused", Header{Command: DMARead, Flags: FlagError, Errno: uint32(syscall.EPERM)}, nil, syscall.EPERM},
		{"gone", Header{}, nil, syscall.ENOTCONN},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server, err := Pair()
			require.NoError(t, err)
			conn := NewConn(server, newMemory(), quiet)
			ends := make(chan error, 1)
			go func() { ends <- conn.Serve() }()
			done := make(chan error, 1)
			go func() { done <- conn.ReadDMA(64, make([]byte, 8)) }()
			m, err := Read(client)
			require.NoError(t, err)
			require.Equal(t, Words(uint64(64), uint64(8)), m.Payload)
			if c.h.Command != 0 {
				c.h.ID, c.h.Flags, c.h.Size = m.ID, c.h.Flags|FlagReply, uint32(HeaderSize+len(c.payload))
				b := make([]byte, HeaderSize)
				c.h.Put(b)
				_, err = client.Write(append(b, c.payload...))
				require.NoError(t, err)
				require.ErrorIs(t, <-done, c.want)
			}
			require.NoError(t, client.Close())
			require.NoError(t, <-ends)
			if c.h.Command == 0 {
				require.ErrorIs(t, <-done, c.want)
			}
		})
	}
}

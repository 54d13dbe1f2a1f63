package rights_test

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/rights"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair makes a reader and the other end of its socket.
func pair(t *testing.T) (*net.UnixConn, *Reader) {
	t.Helper()
	a, b, err := vfioclient.Pair()
	require.NoError(t, err)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, NewReader(b)
}

// send writes bytes with n descriptors.
func send(t *testing.T, c *net.UnixConn, text string, n int) {
	t.Helper()
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	var files []int
	for range n {
		files = append(files, int(f.Fd()))
	}
	_, _, err = c.WriteMsgUnix([]byte(text), syscall.UnixRights(files...), nil)
	require.NoError(t, err)
}

// TestFill collects the descriptors of a message that comes in pieces.
func TestFill(t *testing.T) {
	c, r := pair(t)
	send(t, c, "ab", 2)
	send(t, c, "cde", 1)
	var s Set
	p := make([]byte, 4)
	require.NoError(t, r.Fill(p, &s))
	require.Equal(t, "abcd", string(p))
	require.NoError(t, s.Bad)
	require.Len(t, s.Files, 3)
	kept := s.Files[0]
	s.Close()
	require.Empty(t, s.Files)
	require.ErrorIs(t, syscall.Close(kept), syscall.EBADF)
}

func TestTooMany(t *testing.T) {
	c, r := pair(t)
	send(t, c, "a", Max)
	send(t, c, "b", 1)
	var s Set
	require.NoError(t, r.Fill(make([]byte, 1), &s))
	require.Len(t, s.Files, Max)
	require.NoError(t, r.Fill(make([]byte, 1), &s))
	require.ErrorIs(t, s.Bad, syscall.EINVAL)
	require.Empty(t, s.Files)
}

// TestEnds tells an end between two messages from one inside.
func TestEnds(t *testing.T) {
	c, r := pair(t)
	send(t, c, "ab", 0)
	require.NoError(t, c.CloseWrite())
	var s Set
	require.ErrorIs(t, r.Fill(make([]byte, 3), &s), io.ErrUnexpectedEOF)
	require.ErrorIs(t, r.Fill(make([]byte, 3), &s), io.EOF)
	require.NoError(t, CutOff(nil))
	require.Equal(t, io.ErrUnexpectedEOF, CutOff(io.EOF))
}

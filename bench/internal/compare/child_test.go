package compare

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

// TestChild talks to the other process over all that it serves.
func TestChild(t *testing.T) {
	ctx := t.Context()
	c, err := StartChild(ctx)
	require.NoError(t, err)
	const size = 3*grpcChunk + 5
	for _, side := range []*Contender{
		NewPipe(c, WireEcho, MessageSize, 10),
		NewPipe(c, WireTake, size, 1),
		mustMangos(t, c, WireEcho, MessageSize),
		mustMangos(t, c, WireTake, size),
		NewUnix(c, WireEcho, MessageSize, 10),
		NewUnix(c, WireTake, size, 1),
		mustGRPC(t, c, GRPCEcho, MessageSize),
		mustGRPC(t, c, GRPCTake, size),
	} {
		for range 3 {
			_, err := side.Run(ctx, side.Batch)
			require.NoError(t, err, side.Name)
		}
		if side.Close != nil {
			require.NoError(t, side.Close())
		}
	}
	before, err := c.CPU()
	require.NoError(t, err)
	after, err := c.CPU()
	require.NoError(t, err)
	require.GreaterOrEqual(t, after, before)
	dir := c.dir
	require.NoError(t, c.Close())
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func mustMangos(t *testing.T, c *Child, op, size int) *Contender {
	t.Helper()
	side, err := NewMangos(c, op, size, 1)
	require.NoError(t, err)
	return side
}

func mustGRPC(t *testing.T, c *Child, method string, size int) *Contender {
	t.Helper()
	side, err := NewGRPC(t.Context(), c, method, size, 1)
	require.NoError(t, err)
	return side
}

// TestWireEcho checks that the echo is of the same bytes.
func TestWireEcho(t *testing.T) {
	near, far := net.Pipe()
	served := make(chan error, 1) // so that the server can end first
	go func() { served <- serveConn(far) }()
	w := &wire{conn: near}
	require.NoError(t, w.request(WireEcho, 5, 2))
	answer := make([]byte, 5)
	for _, text := range []string{"hello", "again"} {
		require.NoError(t, w.exchange(t.Context(), []byte(text), answer, 1))
		require.Equal(t, text, string(answer))
	}
	require.NoError(t, near.Close())
	require.ErrorIs(t, <-served, io.EOF)
}

func TestWireRefuses(t *testing.T) {
	for _, c := range []struct {
		op, size int
		says     string
	}{
		{99, 8, "no operation 99"},
		{WireTake, wireMax + 1, "is over"},
	} {
		near, far := net.Pipe()
		served := make(chan error, 1) // so that the server can end first
		go func() { served <- serveConn(far) }()
		w := &wire{conn: near}
		require.NoError(t, w.request(c.op, c.size, 1))
		require.ErrorContains(t, <-served, c.says)
		require.NoError(t, near.Close())
		require.NoError(t, far.Close())
	}
}

func TestGRPCTakeWithoutSize(t *testing.T) {
	c, err := StartChild(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	p, err := openGRPC(t.Context(), c.grpc, GRPCTake, nil)
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, codes.InvalidArgument, status.Code(p.exchange(1)))
}

func TestServePeersRefusesFolder(t *testing.T) {
	code, _, errs := clitest.Run(context.Background(), peerCommand, "/no/such/folder")
	require.Equal(t, cli.ExitFailed, code)
	require.True(t, strings.HasPrefix(errs, "nfbench: "), errs)
}

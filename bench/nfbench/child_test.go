package main

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
)

// TestChild talks to the other process over all that it serves.
func TestChild(t *testing.T) {
	ctx := t.Context()
	c, err := startChild(ctx)
	require.NoError(t, err)
	const size = 3*grpcChunk + 5
	for _, side := range []*contender{
		newPipe(c, wireEcho, messageSize, 10),
		newPipe(c, wireTake, size, 1),
		mustMangos(t, c, wireEcho, messageSize),
		mustMangos(t, c, wireTake, size),
		newUnix(c, wireEcho, messageSize, 10),
		newUnix(c, wireTake, size, 1),
		mustGRPC(t, c, grpcEcho, messageSize),
		mustGRPC(t, c, grpcTake, size),
	} {
		for range 3 {
			_, err := side.run(ctx, side.batch)
			require.NoError(t, err, side.name)
		}
		if side.close != nil {
			require.NoError(t, side.close())
		}
	}
	before, err := c.cpu()
	require.NoError(t, err)
	after, err := c.cpu()
	require.NoError(t, err)
	require.GreaterOrEqual(t, after, before)
	dir := c.dir
	require.NoError(t, c.close())
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func mustMangos(t *testing.T, c *child, op, size int) *contender {
	t.Helper()
	side, err := newMangos(c, op, size, 1)
	require.NoError(t, err)
	return side
}

func mustGRPC(t *testing.T, c *child, method string, size int) *contender {
	t.Helper()
	side, err := newGRPC(t.Context(), c, method, size, 1)
	require.NoError(t, err)
	return side
}

// TestWireEcho checks that the echo is of the same bytes.
func TestWireEcho(t *testing.T) {
	near, far := net.Pipe()
	served := make(chan error, 1) // so that the server can end first
	go func() { served <- serveConn(far) }()
	w := &wire{conn: near}
	require.NoError(t, w.request(wireEcho, 5, 2))
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
		{wireTake, wireMax + 1, "is over"},
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
	c, err := startChild(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.close()) }()
	p, err := openGRPC(t.Context(), c.grpc, grpcTake, nil)
	require.NoError(t, err)
	defer p.close()
	require.Equal(t, codes.InvalidArgument, status.Code(p.exchange(1)))
}

func TestServePeersRefusesFolder(t *testing.T) {
	code, _, errs := nfbench(context.Background(), peerCommand, "/no/such/folder")
	require.Equal(t, exitFailed, code)
	require.True(t, strings.HasPrefix(errs, "nfbench: "), errs)
}

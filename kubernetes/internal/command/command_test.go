package command

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWithProbes: probes are answered while the work runs; without an address for them it does not begin.
func TestWithProbes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, nil))
	probes := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })
	work := func(context.Context) error {
		_, address, _ := strings.Cut(strings.TrimSpace(lines.String()), "address=")
		answer, err := http.Get("http://" + address)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, "well", string(text))
		return io.EOF
	}
	require.ErrorIs(t, WithProbes(t.Context(), log, l.Addr().String(), probes, nil), syscall.EADDRINUSE)
	require.ErrorIs(t, WithProbes(t.Context(), log, "127.0.0.1:0", probes, work), io.EOF)
	http.DefaultClient.CloseIdleConnections()
}

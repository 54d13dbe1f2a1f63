package prom

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlowTarget: a target that needs hundreds of milliseconds for an answer, as those do that wait
// for a processor, is scraped.
func TestSlowTarget(t *testing.T) {
	t.Parallel()
	s := serve(t, false, target(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(400 * time.Millisecond)
		_, _ = w.Write([]byte("slow 7\n"))
	}))
	require.EqualValues(t, 7, until(t, s, "slow", some)[0].Value)
}

// TestBrokenTarget: who waits in vain is told why there are no samples.
func TestBrokenTarget(t *testing.T) {
	t.Parallel()
	s := serve(t, false, target(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	until(t, s, "up == 0", some)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Until(ctx, "slow", some)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "418")
}

// target serves metrics and returns its address.
func target(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(serve)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

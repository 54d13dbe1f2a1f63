//go:build linux

package ring

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClaimAfterOneThatEnded: a claim of which the client has hung up is in nobody's
// way, also before the creator has noticed that.
func TestClaimAfterOneThatEnded(t *testing.T) {
	r := create(t, Config{})
	ended := hungUpConn(t)
	r.own.mu.Lock()
	r.own.held[roleWriter] = ended
	r.own.mu.Unlock()
	before, err := r.Stats()
	require.NoError(t, err)
	w, err := r.Writer(background(t))
	require.NoError(t, err)
	after, err := r.Stats()
	require.NoError(t, err)
	require.Equal(t, before.Generation+1, after.Generation)

	d, err := r.Reader(background(t))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r.own.mu.Lock()
	r.own.waiting = append(r.own.waiting, &claim{roleWriter, ended})
	r.own.mu.Unlock()
	claimed := make(chan error, 1)
	go func() {
		_, err := r.Writer(background(t))
		claimed <- err
	}()
	require.NoError(t, d.Close())
	require.NoError(t, <-claimed)
}

// hungUpConn is a connection of a client that has closed it.
func hungUpConn(t *testing.T) *net.UnixConn {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	require.NoError(t, err)
	defer l.Close()
	client, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	require.NoError(t, err)
	c, err := l.AcceptUnix()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the creator may have closed it
	require.NoError(t, client.Close())
	return c
}

// TestClaimsThatTimeOut: claims end by their contexts at all times. One that is
// granted works, and none is in the way of the next.
func TestClaimsThatTimeOut(t *testing.T) { claimsThatTimeOut(t, create(t, Config{})) }

func claimsThatTimeOut(t *testing.T, r *Ring) {
	for n := range 3000 {
		w, d := pair(t, r)
		require.NoError(t, w.Close())
		ctx, cancel := context.WithCancel(background(t))
		left := make(chan error, 1)
		go func() {
			for range n % 50 {
				runtime.Gosched()
			}
			err := d.Close()
			cancel()
			left <- err
		}()
		w, err := r.Writer(ctx)
		require.NoError(t, <-left)
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			w, err = r.Writer(background(t))
			require.NoError(t, err)
		}
		d, err = r.Reader(background(t))
		require.NoError(t, err)
		require.NoError(t, w.Write(background(t), nil))
		_, err = d.Peek(background(t))
		require.NoError(t, err)
		require.ErrorIs(t, w.Flush(over), context.Canceled)
		require.NoError(t, w.Close())
		require.NoError(t, d.Close())
	}
}

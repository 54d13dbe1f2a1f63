package main

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// bare is a connection that speaks HTTP/2 frame by frame.
type bare struct {
	t    *testing.T
	conn net.Conn
	*http2.Framer
}

// newBare connects and says hello; answers to pings are left to the test.
func newBare(t *testing.T, p *process) *bare {
	conn, err := net.Dial("unix", p.socket)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	b := &bare{t, conn, http2.NewFramer(conn, conn)}
	require.NoError(t, b.WriteSettings())
	return b
}

// next reads frames up to the first that want takes, false if the connection
// ends before.
func (b *bare) next(want func(http2.Frame) bool) bool {
	for {
		f, err := b.ReadFrame()
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return false
		}
		require.NoError(b.t, err)
		if want(f) {
			return true
		}
	}
}

// goAway is the code with which the server ends the connection.
func (b *bare) goAway() (code http2.ErrCode, said bool) {
	said = b.next(func(f http2.Frame) bool {
		g, ok := f.(*http2.GoAwayFrame)
		if ok {
			code = g.ErrCode
		}
		return ok
	})
	return code, said
}

// TestConnectionBounds: a new connection is notified how many calls and how long
// headers it may have.
func TestConnectionBounds(t *testing.T) {
	p := start(t, "--limits-streams", "7")
	told := newBare(t, p).next(func(f http2.Frame) bool {
		s, ok := f.(*http2.SettingsFrame)
		if !ok || s.IsAck() {
			return false
		}
		streams, _ := s.Value(http2.SettingMaxConcurrentStreams)
		headers, _ := s.Value(http2.SettingMaxHeaderListSize)
		require.EqualValues(t, 7, streams)
		require.EqualValues(t, maxHeaders, headers)
		return true
	})
	require.True(t, told)
	p.stop()
}

// TestKeepalive: a client that pings too often is refused, one that does not
// answer is dropped, and each is closed when it is old enough.
func TestKeepalive(t *testing.T) {
	t.Run("pings", func(t *testing.T) {
		p := start(t, "--keepalive-min-time", "1h")
		b := newBare(t, p)
		for range 4 { // the first is free, two more are forgiven
			require.NoError(t, b.WritePing(false, [8]byte{}))
		}
		code, said := b.goAway()
		require.True(t, said)
		require.Equal(t, http2.ErrCodeEnhanceYourCalm, code)
		p.stop()
	})
	t.Run("allowed pings", func(t *testing.T) {
		p := start(t, "--keepalive-min-time", "1ms")
		b := newBare(t, p)
		for range 5 { // after the fourth one the connection above ends
			time.Sleep(20 * time.Millisecond) // the setting is a time, which the server may see shortened
			require.NoError(t, b.WritePing(false, [8]byte{}))
			require.True(t, b.next(func(f http2.Frame) bool {
				require.IsNotType(t, &http2.GoAwayFrame{}, f)
				ping, ok := f.(*http2.PingFrame)
				return ok && ping.IsAck()
			}))
		}
		b.conn.Close()
		p.stop()
	})
	t.Run("silence", func(t *testing.T) {
		p := start(t, "--keepalive-time", "1s", "--keepalive-timeout", "100ms")
		b := newBare(t, p)
		require.True(t, b.next(func(f http2.Frame) bool {
			ping, ok := f.(*http2.PingFrame)
			return ok && !ping.IsAck()
		}), "it asks")
		require.False(t, b.next(func(http2.Frame) bool { return false }), "and hangs up")
		p.stop()
	})
	t.Run("age", func(t *testing.T) {
		p := start(t, "--keepalive-max-age", "50ms", "--keepalive-grace", "50ms")
		b := newBare(t, p)
		code, said := b.goAway()
		require.True(t, said)
		require.Equal(t, http2.ErrCodeNo, code)
		require.False(t, b.next(func(http2.Frame) bool { return false }))
		p.stop()
	})
}

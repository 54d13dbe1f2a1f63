package shmwire

import (
	"context"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// device listens as a device process does, which answers a first message as told, or hangs up.
func device(t *testing.T, answer func(Message) *Message) (path string) {
	path = filepath.Join(t.TempDir(), "device")
	l, err := net.ListenUnix(Network, &net.UnixAddr{Name: path, Net: Network})
	require.NoError(t, err)
	served := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	go func() {
		defer close(served)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			m, files, err := Receive(c, func(*Message) int { return 1 })
			for _, fd := range files {
				_ = os.NewFile(uintptr(fd), "share").Close()
			}
			if a := answer(m); err == nil && a != nil {
				_ = Send(c, a)
			}
			_ = c.Close()
		}
	}()
	return path
}

// TestOpenShareFails: what a device process refuses, or does not know, leaves no socket.
func TestOpenShareFails(t *testing.T) {
	limits := Limits{Clients: 7, Processes: math.MaxUint16, Channels: math.MaxUint32, Memory: 1 << 46}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx    context.Context
		answer func(Message) *Message
		want   error
		says   string
	}{
		"refused": {t.Context(), func(m Message) *Message {
			if LimitsOf(&m) != limits {
				return nil
			}
			r := Refusal(Share, 2, Bound{})
			return &r
		}, bridge.Error(2), "the device"},
		"an older device": {t.Context(), func(Message) *Message { return nil }, bridge.ErrABI, "knows no shares"},
		"another answer":  {t.Context(), func(Message) *Message { return &Message{Kind: Hello} }, bridge.ErrABI, "knows no shares"},
		"ended":           {ended, func(Message) *Message { return nil }, context.Canceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			err := OpenShare(c.ctx, device(t, c.answer), path, 0o600, limits)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			require.NoFileExists(t, path)
		})
	}
}

// TestShareSocket: the socket is there with its mode although this process keeps none; without a device
// process behind it, it is replaced, and a share that is closed may be closed again.
func TestShareSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	at := device(t, func(m Message) *Message { return &Message{Kind: m.Kind} }) // it keeps none either
	for range 2 {
		require.NoError(t, OpenShare(t.Context(), at, path, 0o620, Limits{Clients: 1}))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.ModeSocket|0o620, info.Mode())
	}
	for range 2 {
		require.NoError(t, CloseShare(t.Context(), path))
		require.NoFileExists(t, path)
	}
}

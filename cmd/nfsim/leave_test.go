//go:build cgo

package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
)

// TestDyingDeviceHangsUpFirst: a client can write to a device that dies until it has read the end,
// also when the serving goroutine has closed the socket.
func TestDyingDeviceHangsUpFirst(t *testing.T) {
	client, socket, err := vfioclient.Pair()
	require.NoError(t, err)
	s := &server{options: &options{}}
	s.leave() // nobody is attached: nothing to wait for
	s.socket.Store(socket)
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.leave()
	}()
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, socket.Close())
	_, err = client.Write([]byte("what a client sent meanwhile"))
	require.NoError(t, err)
	select {
	case <-left:
		require.Fail(t, "it did not wait")
	default:
	}
	require.NoError(t, client.Close())
	<-left
	s.leave() // it is closed
}

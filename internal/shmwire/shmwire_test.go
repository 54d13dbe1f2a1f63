package shmwire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestRefusals: each refusal names the limit that it is about, and wraps the error.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		status abi.Status
		of     Of
		want   string
	}{
		{Hello, abi.ErrBusy, OfUser, "this user has as many clients of the device as a user gets (5)"},
		{Hello, abi.ErrBusy, OfNode, "a node takes 5 hosts of another"},
		{Hello, abi.ErrBusy, OfShare, "this share of the device has as many clients as it gets (5)"},
		{Hello, abi.ErrBusy, OfDevice, "the device has no place for another client"},
		{Hello, abi.ErrNoMemory, OfDevice, "no descriptors, threads or memory left"},
		{Map, abi.ErrNoMemory, OfDevice, "its process has no descriptors left"},
		{Map, abi.ErrNoMemory, OfUser, "the clients of this user may map 5 bytes together"},
		{Map, abi.ErrNoMemory, OfShare, "the clients of this share of the device may map 5 bytes together"},
		{Map, abi.ErrNoMemory, OfClient, "a client may map 5 bytes"},
		{Map, abi.ErrInvalid, OfUser, "the device refuses: "},
		{Window, abi.ErrNoMemory, OfUser, "the clients of this user may have windows of 5 bytes together"},
		{Window, abi.ErrNoMemory, OfClient, "a process has windows of 5 bytes"},
		{Window, abi.ErrNoMemory, OfNode, "the node has as many windows as it takes"},
		{Window, abi.ErrInvalid, OfUser, "the device refuses: "},
		{Share, abi.ErrNotSupported, OfNode, "a node of a fabric has no shares"},
		{Share, abi.ErrInvalid, 0, "the device has no such part for so many clients"},
	} {
		m := Refusal(c.kind, c.status, Bound{Of: c.of, Most: 5})
		got, err := Parse(m.encode())
		require.NoError(t, err)
		require.ErrorIs(t, got.Err(), bridge.Error(c.status))
		require.ErrorContains(t, got.Err(), c.want)
	}
}

// TestParse: the version of a message is read although the rest of it is another version's.
func TestParse(t *testing.T) {
	m := Message{Kind: Map, Version: Version, Epoch: 7, Address: 1 << 40, Size: 9}
	text := m.encode()
	got, err := Parse(text)
	require.NoError(t, err)
	require.Equal(t, m, got)
	_, err = Parse(text[:5])
	require.ErrorIs(t, err, ErrForeign)
	text[4]++
	got, err = Parse(text[:6])
	require.ErrorIs(t, err, ErrVersion)
	require.EqualValues(t, Version+1, got.Version)
	text[0]++
	_, err = Parse(text)
	require.ErrorIs(t, err, ErrForeign)
}

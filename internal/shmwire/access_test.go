package shmwire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestAccessOnTheWire: what is written is read, and what can not be is refused.
func TestAccessOnTheWire(t *testing.T) {
	put := Access{Kind: Put, Number: 7, Size: 3, Window: bridge.FabricWindow{Node: abi.MakeNode(1, 2, 3), Key: 1<<63 | 5}, Offset: 1 << 40}
	got, data, err := ParseRequest(append(put.Encode(), "abc"...))
	require.NoError(t, err)
	require.Equal(t, put, got)
	require.Equal(t, "abc", string(data))
	get := Access{Kind: Get, Number: 8, Size: AccessData}
	got, _, err = ParseRequest(get.Encode())
	require.NoError(t, err)
	require.Equal(t, get, got)
	_, data, err = ParseAnswer(append(get.Encode(), make([]byte, AccessData)...))
	require.NoError(t, err)
	require.Len(t, data, AccessData)
	refused := Access{Kind: Get, Size: 9, Status: abi.ErrNoTarget}
	got, _, err = ParseAnswer(refused.Encode())
	require.NoError(t, err)
	require.ErrorIs(t, got.Err(), bridge.ErrNotSubscribed)

	large := Access{Kind: Get, Size: AccessData + 1}
	for i, bad := range [][]byte{
		nil, put.Encode()[:AccessSize-1], put.Encode(), append(put.Encode(), "ab"...), append(put.Encode(), "abcd"...),
		append(get.Encode(), 0), refused.Encode(), large.Encode(), (&Access{}).Encode(), (&Access{Kind: Withdraw + 1}).Encode(),
		append((&Access{Kind: Withdraw}).Encode(), 0),
	} {
		_, _, err := ParseRequest(bad)
		require.ErrorIs(t, err, ErrForeign, i)
	}
	for i, bad := range [][]byte{
		get.Encode(), append(refused.Encode(), make([]byte, 9)...), append(put.Encode(), "abc"...), (&Access{Kind: Withdraw}).Encode(),
	} {
		_, _, err := ParseAnswer(bad)
		require.ErrorIs(t, err, ErrForeign, i)
	}
}

// FuzzAccess: whatever comes is refused, or is what its writer meant.
func FuzzAccess(f *testing.F) {
	f.Add((&Access{Kind: Get, Size: 9}).Encode())
	f.Add(append((&Access{Kind: Put, Size: 3}).Encode(), "abc"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) (Access, []byte, error){ParseRequest, ParseAnswer} {
			a, data, err := parse(b)
			if err == nil && !bytes.Equal(append(a.Encode(), data...), b) {
				t.Fatalf("%x is read as %+v", b, a)
			}
		}
	})
}

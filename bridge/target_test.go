package bridge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

func TestTargetsOfNodes(t *testing.T) {
	node := abi.MakeNode(2, 0, 1)
	remote := bridge.At(node, 1042)
	require.Equal(t, bridge.Target(0x8002000100000412), remote)
	require.Equal(t, "2.0.1/1042", remote.String())
	got, there := remote.Node()
	require.True(t, there)
	require.Equal(t, node, got)

	_, there = bridge.Target(1042).Node()
	require.False(t, there)
	require.Equal(t, "1042", bridge.Target(1042).String())
	require.Equal(t, "4294967296", bridge.Target(1<<32).String(), "bits that are to be zero")
}

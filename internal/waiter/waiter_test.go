package waiter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueueWakesInOrderOfArrival(t *testing.T) {
	var q Queue
	require.Nil(t, q.Wake())
	var wakes [3]chan struct{}
	for i := range wakes {
		wakes[i] = make(chan struct{}, 1)
		require.True(t, q.Add(wakes[i]))
		require.False(t, q.Add(wakes[i]), "it keeps its place")
	}
	require.True(t, q.Remove(wakes[1]))
	require.False(t, q.Remove(wakes[1]))
	require.NotNil(t, q.Wake())
	require.Equal(t, 1, q.Len())
	require.Len(t, wakes[0], 1)
	require.Empty(t, wakes[2])
	require.True(t, q.Add(wakes[0]), "behind the others")
	require.NotNil(t, q.Wake())
	require.NotNil(t, q.Wake(), "a token that is there already is enough")
	require.Nil(t, q.Wake())
	require.Empty(t, wakes[1])
}

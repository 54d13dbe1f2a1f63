package surge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSurge: a burst is reported, what follows is counted once a window until it was
// quiet for one, and keys do not feel each other.
func TestSurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		l := New(3, time.Minute, func(key string, held map[string]Tally) { told = append(told, key+": "+Text(held)) })
		pass := func(key string, n int) (passed int) {
			for i := range n {
				if l.Pass(key, []string{"opened", "closed"}[i%2], i%2*10) {
					passed++
				}
			}
			return passed
		}
		require.Equal(t, 3, pass("a", 10))
		require.Equal(t, 2, pass("b", 2))
		sleep := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		sleep(61 * time.Second)
		require.Equal(t, []string{"a: 7 more: 4 closed, 3 opened; 40 bytes"}, told)
		require.Equal(t, 0, pass("a", 2), "it goes on")
		require.Equal(t, 3, pass("b", 3), "it was quiet")
		sleep(time.Minute)
		require.Equal(t, "a: 2 more: 1 closed, 1 opened; 10 bytes", told[1])
		sleep(time.Minute)
		require.Empty(t, l.surges, "nothing is kept of who is quiet")
		require.Equal(t, 3, pass("a", 4))
		l.Flush()
		require.Equal(t, "a: 1 more: 1 closed; 10 bytes", told[2])
		sleep(time.Hour)
		require.Len(t, told, 3)
	})
}

//go:build linux

package ring

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestPrewarm: a process that creates or opens a ring may have all of its memory there at once. A
// process that did not ask for it has not, and the contents of the ring stay.
func TestPrewarm(t *testing.T) {
	ctx := background(t)
	for _, created := range []bool{false, true} {
		r := create(t, Config{Prewarm: created})
		w, _ := pair(t, r)
		require.NoError(t, w.Write(ctx, []byte("before")))
		for _, opened := range []bool{false, true} {
			o, err := Open(ctx, r.Name(), Options{Prewarm: opened})
			require.NoError(t, err)
			s, err := o.Stats()
			require.NoError(t, err)
			require.Equal(t, opened, present(t, o) >= len(o.area.mem), "%d of %d bytes", present(t, o), len(o.area.mem))
			require.Equal(t, opened, s.FirstTouch > 0)
			_, payload := o.area.at(0)
			require.Equal(t, "before", string(payload[:6]))
			require.NoError(t, o.Close())
		}
		require.Equal(t, created, present(t, r) >= len(r.area.mem))
	}
}

// present returns how many bytes of a ring have pages in this process.
func present(t *testing.T, r *Ring) int {
	text, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	_, after, found := strings.Cut("\n"+string(text), fmt.Sprintf("\n%x-", mapped(r)))
	require.True(t, found)
	_, after, _ = strings.Cut(after, "\nRss:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(t, err)
	return kib << 10
}

// mapped is the address of a ring in this process.
func mapped(r *Ring) uintptr { return uintptr(unsafe.Pointer(&r.area.mem[0])) }

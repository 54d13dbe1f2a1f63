package bridgetest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

var hugeCases = []testCase{
	{"huge/5GiB-sparse", hugeSparse},
}

// hugeSparse: one transfer of 5 GiB, mostly holes: byte counts beyond 32 bits
// and list numbers that wrap several times. A machine without the memory, and
// -short, move 1.75 GiB, where the list number wraps once.
func hugeSparse(e *env) {
	n := uint64(5<<30 + 5)
	if testing.Short() || availableMemory() < 8<<30 {
		n = 7<<28 + 5
	}
	e.Logf("moving %d bytes", n)
	dev := e.device("emem=6GiB")
	sink := e.run(dev, "sink", 1)[0]
	data := e.pages(int(n))
	const list = abi.ListEntries * abi.PageSize
	hash, at := uint64(fnvOffset), uint64(0)
	for _, mark := range []uint64{0, 1<<16*list - 1, 1 << 16 * list, 1<<32 - 1, 1 << 32, 2<<16*list + 3, n - 1} {
		if mark < at || mark >= n {
			continue
		}
		data[mark] = byte(mark>>8) | 1
		hash = fnvZeros(hash, mark-at)
		hash = fnvBytes(hash, data[mark:mark+1])
		at = mark + 1
	}
	hash = fnvZeros(hash, n-at)
	require.NoError(e, sink.SendInd(e.ctx(), data))
	_, count, got := e.sinkStat(sink)
	require.Equal(e, n, count)
	require.Equal(e, hash, got, "content changed on the way")
	st := sink.Stats()
	require.Equal(e, n, st.Indirect[abi.H2D].Bytes)
	require.Greater(e, st.Lists, uint64(1<<16))
}

// availableMemory is what the machine can still give, in bytes.
func availableMemory() uint64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib uint64
		if strings.HasPrefix(lines.Text(), "MemAvailable:") {
			_, _ = fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib)
			return kib << 10
		}
	}
	return 0
}

// requireOneOf requires that an error is one of several.
func requireOneOf(e *env, err error, want ...error) {
	e.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	require.FailNow(e, "unexpected error", "%v is none of %v", err, want)
}

package bridgetest

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var hugeCases = []testCase{
	{"huge/list-number-wraps", hugeWraps},
	{"huge/5GiB-sparse", hugeFull},
}

// listBytes is what a list of page entries has at most. Lists of runs have far more, also where
// bytes are copied for the device by parts.
const listBytes = wire.ListEntries * abi.PageSize

// hugeWraps sends more lists than their numbers count, or of runs, which have far fewer,
// one run more than one.
func hugeWraps(e *Env) {
	dev := e.device("emem=2GiB")
	if dev.Info().Runs {
		require.Less(e, hugeSparse(e, dev, 1<<28+5), uint64(1<<28/listBytes/4))
		return
	}
	require.Greater(e, hugeSparse(e, dev, 7<<28+5), uint64(1<<16))
}

// hugeFull moves more bytes than 32 bits count, or fails: a machine without the
// memory cannot say that this works.
func hugeFull(e *Env) {
	const n = 5<<30 + 5
	require.NoError(e, roomFor(n, availableMemory()))
	dev := e.device("emem=6GiB")
	lists := hugeSparse(e, dev, n)
	require.Equal(e, dev.Info().Runs, lists < n/listBytes/4, "%d lists", lists)
}

// hugeSparse sends one transfer of n bytes, mostly holes, and returns the lists it took. The
// list number of pages wraps from 1.5 GiB on.
func hugeSparse(e *Env, dev bridge.Device, n uint64) uint64 {
	sink := e.Ports(dev, "sink", 1)[0]
	data := e.pages(int(n))
	hash, at := uint64(pattern.FNVOffset), uint64(0)
	for _, mark := range []uint64{0, 1<<16*listBytes - 1, 1 << 16 * listBytes, 1<<32 - 1, 1 << 32, 2<<16*listBytes + 3, n - 1} {
		if mark < at || mark >= n {
			continue
		}
		data[mark] = byte(mark>>8) | 1
		hash = pattern.FNVZeros(hash, mark-at)
		hash = pattern.FNV(hash, data[mark:mark+1])
		at = mark + 1
	}
	hash = pattern.FNVZeros(hash, n-at)
	require.NoError(e, sink.SendInd(e.Ctx(), data))
	_, count, got := e.sinkStat(sink)
	require.Equal(e, n, count)
	require.Equal(e, hash, got, "content changed on the way")
	st := sink.Stats()
	require.Equal(e, n, st.Indirect.H2D.Bytes)
	return st.Lists
}

// roomFor returns an error if a device cannot hold a transfer of n bytes in
// the memory that is available.
func roomFor(n, available uint64) error {
	const besides = 1 << 30 // for the test itself
	if available < n+besides {
		return fmt.Errorf("a transfer of %d bytes needs %d bytes of free memory, there are %d", n, n+besides, available)
	}
	return nil
}

// availableMemory is what the machine can still give, in bytes; where it does
// not say, that is without bound.
func availableMemory() uint64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return math.MaxUint64
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib uint64
		if _, err := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return math.MaxUint64
}

// requireOneOf requires that an error is one of several.
func requireOneOf(e *Env, err error, want ...error) {
	e.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	require.FailNow(e, "unexpected error", "%v is none of %v", err, want)
}

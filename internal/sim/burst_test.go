//go:build cgo

package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestCallersShareAProcessor: when one of many callers on one processor has made thousands of calls,
// each of the others has made some, although none of them ever slept.
func TestCallersShareAProcessor(t *testing.T) {
	const callers, calls = 16, 20000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	e := bridgetest.NewEnv(t)
	dev := openDevice(t, "")
	defer func() { require.NoError(t, dev.Close()) }()
	var chs [callers]bridge.Channel
	for i := range chs {
		chs[i] = e.Ports(dev, "sink", 1)[0]
	}
	var counts [callers]atomic.Int32
	var least atomic.Int32
	var first sync.Once
	var wg sync.WaitGroup
	for i := range chs {
		wg.Go(func() {
			msg := make([]byte, 56)
			for range calls {
				if chs[i].Send(e.Ctx(), msg) != nil {
					return
				}
				counts[i].Add(1)
			}
			first.Do(func() {
				least.Store(calls)
				for i := range counts {
					least.Store(min(least.Load(), counts[i].Load()))
				}
			})
		})
	}
	wg.Wait()
	require.Positive(t, least.Load(), "calls of the last when the first had made %d", calls)
	t.Logf("the last had made %d when the first had made %d", least.Load(), calls)
}

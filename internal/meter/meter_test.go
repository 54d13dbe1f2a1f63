package meter

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// within reports whether bucket n of histograms with these upper bounds is the
// right one for v: the first and the last hold what is beyond.
func within(v float64, n, last int, upper func(int) float64) bool {
	return (n == 0 || v > upper(n-1)) && (n == last || v <= upper(n))
}

func TestIndexes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := time.Duration(rapid.OneOf(
			rapid.Int64Range(1, math.MaxInt64),
			rapid.Custom(func(t *rapid.T) int64 {
				return rapid.Int64Range(1, 1<<rapid.IntRange(1, 40).Draw(t, "bits")).Draw(t, "ns")
			}),
			rapid.Custom(func(t *rapid.T) int64 {
				return 1000<<rapid.IntRange(0, 21).Draw(t, "n") + rapid.Int64Range(-1, 1).Draw(t, "off")
			}),
		).Draw(t, "took"))
		n := durationIndex(took)
		if !within(took.Seconds(), n, bridge.DurationBuckets-1, func(n int) float64 {
			return math.Exp2(float64(n+1)/8 + bridge.DurationFirst)
		}) {
			t.Fatalf("%d ns in bucket %d", took, n)
		}
		size := int(rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1<<48)).Draw(t, "size"))
		n = sizeIndex(size)
		if !within(float64(size), n, bridge.SizeBuckets-1, func(n int) float64 { return math.Ldexp(1, n) }) {
			t.Fatalf("%d bytes in bucket %d", size, n)
		}
	})
}

func TestPath(t *testing.T) {
	var p Path
	start := Now()
	p.Delivered(start, 56)
	p.Delivered(start-Instant(time.Second), 1<<20)
	p.Failed(fmt.Errorf("list 3: %w", bridge.ErrDMA))
	p.Failed(errors.New("of the application"))
	var got bridge.PathProfile
	p.AddTo(&got)
	p.AddTo(&got)
	require.EqualValues(t, 2, got.Errors[abi.ErrDMA])
	require.EqualValues(t, 2, got.Errors[abi.OK])
	require.EqualValues(t, 2*(56+1<<20), got.Bytes)
	require.GreaterOrEqual(t, got.Time, 2*time.Second)
	require.EqualValues(t, 2, got.Sizes[6])
	require.EqualValues(t, 2, got.Sizes[20])
	require.EqualValues(t, 4, sum(got.Durations[:]))
}

func sum(list []uint64) (n uint64) {
	for _, v := range list {
		n += v
	}
	return n
}

// TestSnapshots: a snapshot taken while calls end never shows more in a
// bucket than the histogram counts.
func TestSnapshots(t *testing.T) {
	var p Path
	var wg sync.WaitGroup
	const writers, calls = 4, 2000
	for range writers {
		wg.Go(func() {
			for i := range calls {
				p.Delivered(Now(), i)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		var s bridge.PathProfile
		p.AddTo(&s)
		require.LessOrEqual(t, sum(s.Sizes[:]), sum(s.Durations[:]))
		if over {
			require.EqualValues(t, writers*calls, sum(s.Durations[:]))
			require.EqualValues(t, writers*calls, sum(s.Sizes[:]))
		}
	}
}

// TestSampler: one call in Every is measured, from the time it began to wait.
func TestSampler(t *testing.T) {
	s := NewSampler()
	measured := 0
	for range 100 * Every {
		if s.Start(7) == 7 {
			measured++
		}
	}
	require.Equal(t, 100, measured)
	first := map[int]bool{}
	for range 1000 {
		s := NewSampler()
		for i := range Every {
			if s.Start(0) != 0 {
				first[i] = true
			}
		}
	}
	require.Greater(t, len(first), Every/2, "every channel is measured at the same call")
}

func TestNoAllocations(t *testing.T) {
	var p Path
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Delivered(Now(), 56) }))
}

func BenchmarkDelivered(b *testing.B) {
	var p Path
	for b.Loop() {
		p.Delivered(Now(), 56)
	}
}

func BenchmarkStart(b *testing.B) {
	s := NewSampler()
	for b.Loop() {
		s.Start(0)
	}
}

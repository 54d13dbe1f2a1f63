package linear

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

var (
	calls = flag.Int("calls", 100_000, "calls of TestLinearizable")
	seed  = flag.Uint64("seed", 1, "seed of their contexts")
)

// TestLinearizable: several senders, receivers and Selects, whose contexts end at any time, see what
// one caller at a time could have seen. The processes that they talk to come and go: by a reset of the
// device, by Stop, and by Close.
func TestLinearizable(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:?beat=60s") // however busy the machine is
	require.NoError(t, err)
	defer dev.Close()
	r := &recorder{begin: time.Now(), seed: *seed}
	ends := []ending{reset, stop, closing}
	const rounds = 24
	for i := range rounds {
		require.NoError(t, r.play(t.Context(), dev, *calls/rounds, *calls/rounds/20, ends[i%len(ends)]))
	}
	r.check(t)
}

// TestLinearizableUntilKilled: so they do where the process of the device is killed under them.
func TestLinearizableUntilKilled(t *testing.T) {
	program := clitest.BuildDevice(t)
	r := &recorder{begin: time.Now(), seed: *seed}
	for range 2 {
		address, kill := clitest.Serve(t, program, "--beat", "60s")
		dev, err := nfcomms.Open(t.Context(), address)
		require.NoError(t, err)
		err = r.play(t.Context(), dev, *calls/50, *calls/1000, func(context.Context, *nfcomms.Device, []*nfcomms.Instance) error { return kill() })
		require.NoError(t, err)
		require.NoError(t, dev.Close())
	}
	r.check(t)
}

// check fails the test if no order of the calls is one of the specification.
func (r *recorder) check(t *testing.T) {
	t.Helper()
	var done, lost, chosen int
	for _, o := range r.history {
		switch out := o.Output.(outcome); {
		case out.lost:
			lost++
		case out.message != 0:
			done++
			if o.Input.(call).choice {
				chosen++
			}
		}
	}
	require.NotZero(t, chosen, "calls of Select that took effect")
	begin := time.Now()
	parts := split(r.history)
	for where, part := range parts {
		if fault := refused(part); fault != nil {
			t.Fatalf("-seed %d: %v: %s", r.seed, where, describe(part, fault))
		}
	}
	t.Logf("%d calls in %d parts, %d took effect, %d of them of Select; of %d nobody knows; checked in %v",
		len(r.history), len(parts), done, chosen, lost, time.Since(begin))
}

package proto

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/litmus"
)

// TestLitmusModelled: what the protocol's SYNC points order is enough on every processor, and none
// of it is more than some processor needs. A device on a bus is one that is relaxed.
func TestLitmusModelled(t *testing.T) {
	for _, l := range []litmus.Test{
		{Name: "a slot is there once its phase says so", Threads: func(w litmus.With) [][]litmus.Access {
			return [][]litmus.Access{
				{{Store: true, Word: "payload", Value: 1}, {Store: true, Word: "header", Value: 1, Rel: w.Rel}},
				{{Word: "header", Into: "phase", Acq: w.Acq}, {Word: "payload", Into: "payload"}},
			}
		}, Bad: "payload=0 phase=1", Drop: map[string][]litmus.Model{"": nil, "release": {litmus.Relaxed}, "acquire": {litmus.Relaxed}}},
		// A kernel has a full fence here, as a head in a BAR is no store that could release.
		{Name: "a slot is copied before the head lets it be written again", Threads: func(w litmus.With) [][]litmus.Access {
			return [][]litmus.Access{
				litmus.Between(w.Fence, litmus.Access{Word: "payload", Into: "copy"}, litmus.Access{Store: true, Word: "head", Value: 1}),
				{{Word: "head", Into: "room", Acq: w.Acq}, {Store: true, Word: "payload", Value: 2, AfterABranch: true}},
			}
		}, Bad: "copy=2 room=1", Drop: map[string][]litmus.Model{"": nil, "fence": {litmus.Relaxed}, "acquire": nil}},
		{Name: "an island that sleeps is rung", Threads: parked("asleep", "slot"), Bad: "asleep=0 slot=0", Drop: parkedDrop},
		{Name: "a host that sleeps is interrupted", Threads: parked("park", "slot"), Bad: "park=0 slot=0", Drop: parkedDrop},
	} {
		require.Empty(t, l.Wrong())
	}
}

var parkedDrop = map[string][]litmus.Model{"": nil, "fence": {litmus.X86, litmus.Relaxed}}

// parked is a side that announces its sleep and checks once more, and a side that stores the word
// it checks.
func parked(sleeps, stores string) func(litmus.With) [][]litmus.Access {
	return func(w litmus.With) [][]litmus.Access {
		return [][]litmus.Access{
			litmus.Between(w.Fence, litmus.Access{Store: true, Word: sleeps, Value: 1}, litmus.Access{Word: stores, Into: stores, Acq: w.Acq}),
			litmus.Between(w.Fence, litmus.Access{Store: true, Word: stores, Value: 1, Rel: w.Rel}, litmus.Access{Word: sleeps, Into: sleeps, Acq: w.Acq}),
		}
	}
}

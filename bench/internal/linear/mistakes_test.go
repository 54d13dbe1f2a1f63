package linear

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// pair is a message that arrived: the places of its calls.
type pair struct{ send, receive int }

// pairs lists those of a history without a lost call.
func pairs(history []porcupine.Operation) []pair {
	sent, received := map[uint64]int{}, map[uint64]int{}
	for i, o := range history {
		switch in, out := o.Input.(call), o.Output.(outcome); {
		case out.message != 0 && in.send != 0:
			sent[in.send] = i
		case out.message != 0:
			received[out.message] = i
		}
	}
	var all []pair
	for m, i := range sent {
		if k, ok := received[m]; ok {
			all = append(all, pair{i, k})
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return int(history[a.receive].Return - history[b.receive].Return) })
	return all
}

// mistakes change a legal history as one mistake would, at a message and a later one: the later was
// sent after both calls of the first had returned.
var mistakes = map[string]func(h []porcupine.Operation, first, later pair) []porcupine.Operation{
	"a message is received twice": func(h []porcupine.Operation, first, later pair) []porcupine.Operation {
		again := h[first.receive]
		again.Call, again.Return = h[later.send].Call, h[later.send].Return
		return append(h, again)
	},
	"a message is lost after nil": func(h []porcupine.Operation, first, _ pair) []porcupine.Operation {
		return slices.Delete(h, first.receive, first.receive+1)
	},
	"a message arrives although it was taken back": func(h []porcupine.Operation, first, _ pair) []porcupine.Operation {
		h[first.send].Output = outcome{}
		return h
	},
	"two messages change places": func(h []porcupine.Operation, first, later pair) []porcupine.Operation {
		h[first.receive].Output, h[later.receive].Output = h[later.receive].Output, h[first.receive].Output
		return h
	},
	"a Select lets two cases take effect": func(h []porcupine.Operation, first, later pair) []porcupine.Operation {
		chosen := h[later.send]
		other := call{where: chosen.Input.(call).where, send: 999_999, choice: true}
		chosen.Input, chosen.Output = other, outcome{}
		h[later.receive].Output = outcome{message: other.send}
		return append(h, chosen)
	},
}

// TestMistakesAreFound: a recorded history is legal, but refused with any mistake in it; what is left of
// it then is small.
func TestMistakesAreFound(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:?beat=60s") // however busy the machine is
	require.NoError(t, err)
	defer dev.Close()
	r := &recorder{begin: time.Now(), seed: *seed}
	require.NoError(t, r.play(t.Context(), dev, 1000, 1000, closing))
	random := rand.New(rand.NewPCG(*seed, 0))
	for name, change := range mistakes {
		text, places := "", 0
		for _, part := range split(r.history) {
			if fault := refused(part); fault != nil {
				t.Fatal(describe(part, fault))
			}
			all := pairs(part)
			for range min(10, len(all)) {
				first := all[random.IntN(len(all))]
				later := slices.IndexFunc(all, func(p pair) bool { return part[p.send].Call > max(part[first.send].Return, part[first.receive].Return) })
				if later < 0 {
					continue
				}
				history := change(slices.Clone(part), first, all[later])
				fault := refused(history)
				require.NotEmpty(t, fault, name)
				text = describe(history, fault)
				require.LessOrEqual(t, len(fault), 8, "%s: %s", name, text)
				places++
			}
		}
		require.NotZero(t, places, name)
		t.Logf("%s, at %d places, such as: %s", name, places, text)
	}
}

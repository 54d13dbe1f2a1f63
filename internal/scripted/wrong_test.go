package scripted

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestCatalogue: every row has a kind and a name of its own, and what its
// conclusion needs; every kind has rows.
func TestCatalogue(t *testing.T) {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, w := range Catalogue {
		name := w.In + "/" + w.Name
		require.False(t, seen[name], "twice: %s", name)
		seen[name], used[w.Kind()] = true, true
		require.True(t, slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Name == w.Kind() }), "no kind: %s", w.Name)
		require.True(t, (w.alter == nil) != (w.chance == nil), w.Name)
		if w.Want != Undecided {
			require.Contains(t, deviationCalls, w.In, w.Name)
			require.NotNil(t, w.Match, w.Name)
			require.Nil(t, w.chance, "%s: chance decides nothing", w.Name)
		}
		require.Equal(t, w.Want == Refused, w.Status != abi.OK && w.Want != Faulted, w.Name)
	}
	for _, k := range Kinds {
		require.True(t, used[k.Name], "no row: %s", k.Name)
	}
}

// TestFitting: rows are for the messages that they can be made of.
func TestFitting(t *testing.T) {
	m := wire.Slot{Header: uint64(wire.MakeHeader(wire.TypeDone, abi.PayloadSize, 1, 1, 5))}
	for _, w := range Fitting("", &m) {
		require.NotEqual(t, "offer", w.Kind())
		require.True(t, w.Match == nil || w.Match(&m))
	}
	require.NotEmpty(t, Fitting("count", &m))
	require.Empty(t, Fitting("none", &m))
}

package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// TestVoidPagesAreNews: an offer of something else makes posted pages void, and their caller learns
// of that also if the device took the offer back before the caller looked.
func TestVoidPagesAreNews(t *testing.T) {
	for _, withdraws := range []bool{false, true} {
		m := &machine{dir: abi.D2H}
		_, ok := m.act(proto.PutEager)
		require.True(t, ok)
		if withdraws {
			_, ok = m.act(proto.PutWithdraw)
			require.True(t, ok)
		}
		for _, in := range []proto.Input{proto.TakeOffer, proto.TakeWithdraw} {
			w := m.word.Load()
			require.True(t, m.followLocked(w, protocol.Step(abi.D2H, standOf(w), in)))
		}
		require.NotEqual(t, proto.StatePosted, stateOf(m.word.Load()))
		require.NotZero(t, m.word.Load()&events)
	}
}

// TestQuestionsAreNoNews: a question whether this host waits leaves events that no call has seen yet: that its
// bytes arrived, or did not.
func TestQuestionsAreNoNews(t *testing.T) {
	for _, ends := range [][]proto.Input{nil, {proto.TakeConsumed}, {proto.TakeRefused}} {
		m := &machine{dir: abi.D2H}
		_, ok := m.act(proto.PutEager)
		require.True(t, ok)
		for _, in := range ends {
			w := m.word.Load()
			require.True(t, m.followLocked(w, protocol.Step(abi.D2H, standOf(w), in)))
			require.NotZero(t, m.word.Load()&events)
		}
		w := m.word.Load()
		asks := protocol.Step(abi.D2H, standOf(w), proto.TakeAsk)
		require.Equal(t, proto.EventAsked, asks.Event())
		require.True(t, m.followLocked(w, asks))
		require.Equal(t, w, m.word.Load())
	}
}

// TestRecalledOffersAreNoNews: an offer was kept for a call, and given back when the device asked for
// it before the call looked. Nothing is left that a later call takes for an offer.
func TestRecalledOffersAreNoNews(t *testing.T) {
	m := &machine{dir: abi.D2H}
	take := func(in proto.Input) {
		w := m.word.Load()
		require.True(t, m.followLocked(w, protocol.Step(abi.D2H, standOf(w), in)))
	}
	take(proto.TakeOffer)
	require.True(t, m.keep())
	take(proto.TakeWithdraw)
	e, ok := m.act(proto.Release)
	require.True(t, ok)
	require.Equal(t, proto.EventRecalled, e)
	_, ok = m.act(proto.PutWithdrawn)
	require.True(t, ok)
	require.False(t, m.offered())
	require.Zero(t, m.word.Load()&events, "a receive would look for the offer for ever")
}

package nfcomms

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCasesWithoutADevice: Try and Start have the meaning that Select gives to cases of Go channels,
// of nil channels and to the default.
func TestCasesWithoutADevice(t *testing.T) {
	ctx := background(t)
	c, got, ok := make(chan int, 1), 0, false
	for _, try := range []struct {
		of    Case
		ready bool
	}{
		{Case{}, false}, {Default(), true}, {SendCase(nil, nil), false}, {GoReceive(c, &got, nil), false},
		{GoSend(c, 5), true}, {GoSend(c, 6), false}, {GoReceive(c, &got, &ok), true},
	} {
		ready, err := try.of.Try()
		require.NoError(t, err)
		require.Equal(t, try.ready, ready)
	}
	require.Equal(t, 5, got)
	require.True(t, ok)

	receive := GoReceive(c, &got, nil).Start(ctx)
	send := GoSend(c, 7).Start(ctx)
	for _, f := range []*Future{send, receive, Default().Start(ctx)} {
		n, err := f.Wait(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.Equal(t, 7, got)

	full := make(chan int)
	for text, never := range map[string]Case{
		"select": {}, "send": GoSend(full, 1), "receive": GoReceive(full, nil, nil),
	} {
		ending, cancel := context.WithCancel(ctx)
		f := never.Start(ending)
		cancel()
		_, err := f.Wait(ctx)
		require.EqualError(t, err, text+": withdrawn: context canceled")
		isOpError(t, text, err)
	}
}

// TestOfferCaseStarts: the future of an offer ends with the offer, which stays.
func TestOfferCaseStarts(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	var offer Offer
	ready, err := OfferCase(ch, &offer).Try()
	require.NoError(t, err)
	require.False(t, ready)
	f := OfferCase(ch, &offer).Start(ctx)
	wait := running(t, func() error { return far.write(ctx, []byte("four")) })
	_, err = f.Wait(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 4, offer.Size)
	var n int
	_, err = ReceiveCase(ch, make([]byte, 4), &n).Start(ctx).Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	wait()
}

//go:build cgo

package nfcomms

import (
	"fmt"
	"testing"
)

// BenchmarkSelectHerd measures what one wake costs beside others that sleep: n
// Selects are blocked on one device, each on a channel of its own, or all on the
// same half of one, and each message wakes one.
func BenchmarkSelectHerd(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("channels-%d", n), func(b *testing.B) { selectHerd(b, n, n) })
		b.Run(fmt.Sprintf("half-%d", n), func(b *testing.B) { selectHerd(b, 1, n) })
	}
}

// selectHerd has n Selects wait on so many channels.
func selectHerd(b *testing.B, channels, n int) {
	ctx := background(b)
	dev := openSim(b, fmt.Sprintf("sim:?channels=%d", channels+64))
	chs := startSim(b, dev, "loopback", channels)
	woken := make(chan struct{})
	for i := range n {
		go func() {
			buf := make([]byte, MessageSize)
			for {
				_, err := Select(ctx, ReceiveCase(chs[i%channels], buf, nil))
				if err != nil {
					return
				}
				woken <- struct{}{}
			}
		}()
	}
	round := func(i int) {
		if err := chs[i%channels].Send(ctx, nil); err != nil {
			b.Fatal(err)
		}
		select {
		case <-woken:
		case <-ctx.Done():
			b.Fatal("no Select has the message")
		}
	}
	for i := range n { // all are asleep once each was awake
		round(i)
	}
	b.ResetTimer()
	for i := range b.N {
		round(i)
	}
}

// BenchmarkSelectSend measures a Select whose target waits.
func BenchmarkSelectSend(b *testing.B) {
	ctx := background(b)
	ch := startSim(b, openSim(b, "sim:"), "sink", 1)[0]
	msg := make([]byte, 8)
	for b.Loop() {
		if _, err := Select(ctx, SendCase(ch, msg), ReceiveCase(ch, msg, nil)); err != nil {
			b.Fatal(err)
		}
	}
}

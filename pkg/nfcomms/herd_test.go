//go:build cgo

package nfcomms

import (
	"fmt"
	"testing"
)

// BenchmarkSelectHerd measures what one wake costs beside others that sleep: n
// Selects are blocked on one device, each on a channel of its own, a round wakes
// one of them.
func BenchmarkSelectHerd(b *testing.B) {
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { selectHerd(b, n) })
	}
}

func selectHerd(b *testing.B, n int) {
	ctx := background(b)
	dev := openSim(b, fmt.Sprintf("sim:?channels=%d", 2*n+64))
	chs := startSim(b, dev, "loopback", n)
	woken := make(chan error)
	for _, ch := range chs {
		go func() {
			buf := make([]byte, MessageSize)
			for {
				i, err := Select(ctx, ReceiveCase(ch, buf, nil), SendCase(nil, nil))
				if i != 0 || err != nil {
					return
				}
				woken <- nil
			}
		}()
	}
	for _, ch := range chs { // all are asleep once each was awake
		if err := ch.Send(ctx, nil); err != nil {
			b.Fatal(err)
		}
		<-woken
	}
	b.ResetTimer()
	for i := range b.N {
		if err := chs[i%n].Send(ctx, nil); err != nil {
			b.Fatal(err)
		}
		<-woken
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

//go:build cgo

package pool

import (
	"testing"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// BenchmarkDo is an exchange of messages with a process of a pool; Direct is the same without one.
func BenchmarkDo(b *testing.B) {
	dev := open(b, "sim:")
	in, out := make([]byte, 8), make([]byte, 8)
	b.Run("Pool", func(b *testing.B) {
		p, err := New(background(b), dev, Options{Program: nfcomms.Program{Name: "loopback"}})
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Do(b.Context(), in, out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Direct", func(b *testing.B) {
		i, err := dev.Run(background(b), nfcomms.Program{Name: "loopback"})
		if err != nil {
			b.Fatal(err)
		}
		ch := i.Channels[0]
		for b.Loop() {
			if err := ch.Send(b.Context(), in); err != nil {
				b.Fatal(err)
			}
			if _, err := ch.Receive(b.Context(), out); err != nil {
				b.Fatal(err)
			}
		}
	})
}

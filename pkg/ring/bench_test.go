//go:build linux

package ring

import (
	"context"
	"testing"
)

// BenchmarkStream moves packets of 8 KiB from a goroutine to another, written
// and read in place; memcpy of as many bytes is BenchmarkCopy.
func BenchmarkStream(b *testing.B) {
	r, err := Create(newName(), Config{Prewarm: true})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	ctx := context.Background()
	d, err := r.Reader(ctx)
	if err != nil {
		b.Fatal(err)
	}
	w, err := r.Writer(ctx)
	if err != nil {
		b.Fatal(err)
	}
	source := make([]byte, r.Payload())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := d.Peek(ctx); err != nil {
				return
			}
			d.Release()
		}
	}()
	b.SetBytes(int64(r.Payload()))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(ctx, source); err != nil {
			b.Fatal(err)
		}
	}
	_ = w.Close()
	<-done
}

// BenchmarkCopy is memcpy into as much memory as the ring has.
func BenchmarkCopy(b *testing.B) {
	source := make([]byte, DefaultPacketSize-packetHeader)
	to := make([]byte, DefaultPackets*DefaultPacketSize)
	b.SetBytes(int64(len(source)))
	for i := 0; b.Loop(); i++ {
		copy(to[i%DefaultPackets*DefaultPacketSize:], source)
	}
}

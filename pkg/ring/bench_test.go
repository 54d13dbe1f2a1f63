//go:build linux

package ring

import (
	"context"
	"os"
	"strconv"
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

// BenchmarkSmall moves packets of 56 bytes, in batches, from a goroutine to another.
func BenchmarkSmall(b *testing.B) {
	for _, batch := range []int{1, 8, 32} {
		b.Run(strconv.Itoa(batch), func(b *testing.B) {
			r, err := Create(newName(), Config{Packets: 1009, PacketSize: os.Getpagesize(), Prewarm: true})
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
			packets := make([][]byte, batch)
			for i := range packets {
				packets[i] = make([]byte, 56)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				into := make([][]byte, batch)
				for {
					if _, err := d.PeekBatch(ctx, into); err != nil {
						return
					}
					d.Release()
				}
			}()
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				if _, err := w.WriteBatch(ctx, packets); err != nil {
					b.Fatal(err)
				}
			}
			_ = w.Close()
			<-done
		})
	}
}

// BenchmarkCopy is memcpy into as much memory as the ring has.
func BenchmarkCopy(b *testing.B) {
	source := make([]byte, defaultPacketSize-packetHeader)
	to := make([]byte, defaultPackets*defaultPacketSize)
	b.SetBytes(int64(len(source)))
	for i := 0; b.Loop(); i++ {
		copy(to[i%defaultPackets*defaultPacketSize:], source)
	}
}

//go:build linux

package ring

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// numbered are n packets whose contents are their numbers.
func numbered(from uint64, n int) (packets [][]byte) {
	for i := range n {
		packets = append(packets, binary.LittleEndian.AppendUint64(nil, from+uint64(i)))
	}
	return packets
}

// TestBatches: any mix of single packets and batches, of any sizes: order and
// contents are exact, what was not released is not overwritten, and the ring holds
// what it says.
func TestBatches(t *testing.T) {
	r := create(t, Config{Packets: 11})
	rapid.Check(t, func(t *rapid.T) {
		d, err := r.Reader(t.Context())
		require.NoError(t, err)
		w, err := r.Writer(t.Context())
		require.NoError(t, err)
		defer d.Close()
		defer w.Close()
		var sent, got uint64
		var held [][]byte
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			k := rapid.IntRange(1, 14).Draw(t, "packets")
			switch rapid.IntRange(0, 2).Draw(t, "move") {
			case 0:
				head := max(int(got)-1, 0) // the reader's stays on the last one it is through with,
				if len(held) > 0 {         // or stands on the first one that it has
					head = int(got)
				}
				n, err := w.WriteBatch(over, numbered(sent, k))
				require.Equal(t, min(k, head+r.Packets()-1-int(sent)), n, "no more than there is room for, and no less")
				require.Equal(t, n < k, err != nil)
				sent += uint64(n)
			case 1:
				if w.Write(over, numbered(sent, 1)[0]) == nil {
					sent++
				}
			case 2:
				into := make([][]byte, k)
				n, err := d.PeekBatch(over, into)
				require.Equal(t, got == sent, err != nil)
				require.LessOrEqual(t, n, k)
				for i := range n {
					require.Equal(t, got+uint64(i), binary.LittleEndian.Uint64(into[i]))
				}
				held = into[:n]
				require.Equal(t, err == nil, n > 0)
			}
			for i, p := range held { // still what they were
				require.Equal(t, got+uint64(i), binary.LittleEndian.Uint64(p))
			}
			if len(held) > 0 && rapid.Bool().Draw(t, "release") {
				got += d.taken
				d.Release()
				held = nil
			}
		}
	})
}

// TestBatchErrors: a packet that is too large publishes none, and one that is in
// the middle of a batch is found.
func TestBatchErrors(t *testing.T) {
	ctx := context.Background()
	r := create(t, Config{Packets: 7})
	w, d := pair(t, r)
	n, err := w.WriteBatch(ctx, [][]byte{{1}, make([]byte, r.Payload()+1)})
	require.ErrorIs(t, err, ErrTooLarge)
	require.Zero(t, n)
	n, err = w.WriteBatch(ctx, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = w.WriteBatch(over, numbered(0, 9))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 6, n, "what there was room for")
	n, err = d.PeekBatch(ctx, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	p, _ := r.area.at(2)
	p.Number = 9
	_, err = d.PeekBatch(ctx, make([][]byte, 4))
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, w.Close())
	_, err = w.WriteBatch(ctx, numbered(0, 1))
	require.ErrorIs(t, err, ErrClosed)
}

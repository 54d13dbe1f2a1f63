package nfcomms

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// budget holds that f allocates nothing. Paths that borrow pooled memory are
// measured without the race detector only.
func budget(t *testing.T, name string, pooled bool, f func()) {
	t.Run(name, func(t *testing.T) {
		allocs := testing.AllocsPerRun(200, f)
		if pooled && raceEnabled {
			t.Logf("%v allocations, pools do not keep under the race detector", allocs)
			return
		}
		assert.Zero(t, allocs)
	})
}

func TestNoAllocations(t *testing.T) {
	ctx := context.Background()
	ch, n := nullChannel()
	n.got = make([]byte, 8)
	msg := make([]byte, 16)
	floats, named := make([]float64, 8), make([]celsius, 8)
	p := onHeap(point{})
	budget(t, "Send", false, func() { _ = ch.Send(ctx, msg) })
	budget(t, "Receive", false, func() { _, _ = ch.Receive(ctx, msg) })
	budget(t, "SendInd bytes", false, func() { _ = ch.SendInd(ctx, msg, len(msg)) })
	budget(t, "SendInd whole", false, func() { _ = ch.SendInd(ctx, msg) })
	budget(t, "SendInd whole floats", false, func() { _ = ch.SendInd(ctx, floats) })
	budget(t, "SendInd fresh slice", false, func() { _ = ch.SendInd(ctx, msg[2:9], 7) })
	budget(t, "SendInd floats", false, func() { _ = ch.SendInd(ctx, floats, 64) })
	budget(t, "SendInd reflect", false, func() { _ = ch.SendInd(ctx, named, 64) })
	budget(t, "SendInd pointer", false, func() { _ = ch.SendInd(ctx, p, 8) })
	budget(t, "SendInd local", true, func() {
		local := [3]uint64{1, 2, 3}
		_ = ch.SendInd(ctx, &local, 24)
	})
	budget(t, "SendInd whole local", true, func() {
		local := [3]uint64{1, 2, 3}
		_ = ch.SendInd(ctx, &local)
	})
	budget(t, "SendInd value", true, func() { _ = ch.SendInd(ctx, point{1, 2}, 8) })
	budget(t, "ReceiveInd bytes", false, func() { _, _ = ch.ReceiveInd(ctx, msg, len(msg)) })
	budget(t, "ReceiveInd whole", false, func() { _, _ = ch.ReceiveInd(ctx, floats) })
	budget(t, "ReceiveInd pointer", false, func() { _, _ = ch.ReceiveInd(ctx, p, 8) })
	budget(t, "ReceiveInd local", true, func() {
		var local [3]uint64
		_, _ = ch.ReceiveInd(ctx, &local, 24)
	})
	small, large := ChanOf[point](ch), ChanOf[[100]uint64](ch)
	budget(t, "Chan.Send message", true, func() { _ = small.Send(ctx, point{1, 2}) })
	budget(t, "Chan.Send transfer", true, func() { _ = large.Send(ctx, [100]uint64{}) })
	n.got = make([]byte, 8)
	budget(t, "Chan.Receive message", true, func() { _, _ = small.Receive(ctx) })
	budget(t, "Chan.Receive transfer", true, func() { _, _ = large.Receive(ctx) })
	budget(t, "SendIndFunc", true, func() { _ = ch.SendIndFunc(ctx, 5000, func([]byte) error { return nil }) })
}

package bridgetest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

// postedCases are about a host that waits for a transfer before the device writes: it may have told
// the device already where the bytes go.
var postedCases = []testCase{
	{"posted/arrives", postedArrives},
	{"posted/another-size", postedAnotherSize},
	{"posted/a-message", postedMessage},
	{"posted/cancelled", postedCancelled},
	{"posted/stays-quiet", postedQuiet},
}

// postedSizes are those of transfers that may travel eagerly, and of some that may not.
var postedSizes = []uint64{0, 1, 56, 4096, 5000, 16383, 16384, 16385, 1 << 17}

// waits makes a ReceiveInd that sleeps before the device writes.
func (e *Env) waits(ctx context.Context, dev bridge.Device, ch bridge.Channel, data []byte) *Pending {
	e.Helper()
	p := Call("ReceiveInd", func() error { return ch.ReceiveInd(ctx, data) })
	e.UntilBlocked(dev, 1)
	return p
}

// write makes an expect process write n bytes.
func (e *Env) write(ports []bridge.Channel, n uint64) {
	e.Helper()
	e.send(ports[0], pattern.Words(n|pattern.ExpectWrite))
}

// postedArrives: a receive may be posted before the offer of its transfer, or after it.
func postedArrives(e *Env) {
	dev := e.device("")
	source := e.Ports(dev, "source", 1)[0]
	for i, n := range postedSizes {
		seed := uint64(i)
		b := NewBuffer(int(n), 100*i)
		p := e.waits(e.Ctx(), dev, source, b.Data)
		e.send(source, pattern.Words(n, seed))
		require.NoError(e, e.Wait(p), "%d bytes", n)
		require.Negative(e, pattern.Diff(b.Data, 0, seed), "%d bytes", n)
		e.Check(b)
		e.receivePattern(source, int(n), 17*i, seed+1)
	}
}

// postedAnotherSize: a receive that waited is refused like one that arrives later, and takes
// nothing.
func postedAnotherSize(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	for _, c := range []struct{ host, device uint64 }{{100, 101}, {101, 100}, {0, 5}, {5, 0}, {4096, 1 << 17}, {1 << 17, 4096}} {
		b := NewBuffer(int(c.host), 17)
		p := e.waits(e.Ctx(), dev, ports[1], b.Data)
		e.write(ports, c.device)
		e.isSizeError(e.Wait(p), c.host, c.device)
		require.Negative(e, firstNot(b.whole, canary), "written although refused")
		e.offers(ports[1], bridge.Offer{Indirect: true, Size: c.device})
		require.NoError(e, ports[1].ReceiveInd(e.Ctx(), make([]byte, c.device)))
		require.Equal(e, abi.OK, e.status(ports[0]))
	}
}

// postedMessage: a receive of transfers that waited leaves a message where it is.
func postedMessage(e *Env) {
	dev := e.device("")
	loop := e.Ports(dev, "loopback", 1)[0]
	for _, n := range postedSizes {
		b := NewBuffer(int(n), 1)
		p := e.waits(e.Ctx(), dev, loop, b.Data)
		e.send(loop, []byte("direct"))
		require.ErrorIs(e, e.Wait(p), bridge.ErrKindMismatch)
		require.Negative(e, firstNot(b.whole, canary), "written although refused")
		require.Equal(e, "direct", string(e.receive(loop)))
		e.EchoInd(loop, int(n), n)
	}
}

// postedCancelled: what a receive that was cancelled waited for is the next one's.
func postedCancelled(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	for _, n := range postedSizes {
		b := NewBuffer(int(n), 3)
		ctx, cancel := context.WithCancel(e.Ctx())
		p := e.waits(ctx, dev, ports[1], b.Data)
		cancel()
		e.IsWithdrawn(e.Wait(p), context.Canceled)
		e.write(ports, n)
		e.offers(ports[1], bridge.Offer{Indirect: true, Size: n})
		require.NoError(e, ports[1].ReceiveInd(e.Ctx(), make([]byte, n)))
		require.Equal(e, abi.OK, e.status(ports[0]))
		require.Negative(e, firstNot(b.whole, canary), "written after it was taken back")
	}
}

// postedQuiet: memory that a receive waited with, and had back without a transfer, is not written
// by the transfers that follow.
func postedQuiet(e *Env) {
	dev := e.device("")
	loop := e.Ports(dev, "loopback", 1)[0]
	for _, n := range postedSizes[1:] {
		b := NewBuffer(int(n), 5)
		p := e.waits(e.Ctx(), dev, loop, b.Data)
		e.send(loop, nil)
		require.ErrorIs(e, e.Wait(p), bridge.ErrKindMismatch)
		require.Empty(e, e.receive(loop))
		for range 3 {
			e.EchoInd(loop, int(n), n)
		}
		require.Negative(e, firstNot(b.whole, canary), "written by another transfer")
	}
}

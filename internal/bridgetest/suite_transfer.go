package bridgetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var transferCases = []testCase{
	{"transfer/sizes-and-offsets", transferSizes},
	{"transfer/checksums", transferChecksums},
	{"transfer/64MiB", transferLarge},
	{"transfer/service-loopback", transferService},
	{"transfer/mixed-with-messages", transferMixed},
	{"transfer/concurrent", transferConcurrent},
	{"transfer/both-ways-at-once", transferBothWays},
	{"transfer/small-window", transferSmallWindow},
	{"transfer/abort-leaves-no-dma", transferAbort},
}

var (
	transferLengths = []int{0, 1, 55, 56, 57, 4095, 4096, 4097,
		4*4096 - 1, 4 * 4096, 4*4096 + 1, 6*4096 - 1, 6 * 4096, 6*4096 + 1, 13*4096 + 7, 1<<20 + 3}
	pageOffsets = []int{0, 1, 60, 64, 4095}
)

const canary = 0xa5

// Buffer is memory with canaries on both sides.
type Buffer struct {
	whole []byte
	Data  []byte
}

// NewBuffer returns n bytes that start at the given offset within a page.
func NewBuffer(n, offset int) *Buffer {
	whole := make([]byte, n+3*abi.PageSize)
	for i := range whole {
		whole[i] = canary
	}
	base := int(uintptr(unsafe.Pointer(&whole[0])) % abi.PageSize)
	at := 2*abi.PageSize - base + offset
	return &Buffer{whole: whole, Data: whole[at : at+n : at+n]}
}

// Check requires that nothing was written outside the data.
func (e *Env) Check(b *Buffer) {
	e.Helper()
	at := 0
	if len(b.Data) > 0 {
		at = int(uintptr(unsafe.Pointer(&b.Data[0])) - uintptr(unsafe.Pointer(&b.whole[0])))
	}
	require.Negative(e, firstNot(b.whole[:at], canary), "written before the buffer")
	require.Negative(e, firstNot(b.whole[at+len(b.Data):], canary), "written after the buffer")
}

// firstNot returns the first index that does not hold x, or -1.
//
//go:norace
func firstNot(b []byte, x byte) int {
	for i := range b {
		if b[i] != x {
			return i
		}
	}
	return -1
}

// sinkStat asks a sink what it took.
func (e *Env) sinkStat(ch bridge.Channel) (messages, count, hash uint64) {
	e.Helper()
	e.send(ch, []byte(pattern.SinkQuery))
	w := e.words(e.receive(ch), 3)
	return w[0], w[1], w[2]
}

// words unpacks n little-endian words.
func (e *Env) words(b []byte, n int) []uint64 {
	e.Helper()
	require.Len(e, b, 8*n)
	return slices.Clone(unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), n))
}

// transferSizes: every size at every offset within a page, both ways, arrives
// unchanged and writes nothing else.
func transferSizes(e *Env) {
	dev := e.device("")
	sink, source := e.Ports(dev, "sink", 1)[0], e.Ports(dev, "source", 1)[0]
	var sum uint64
	for i, n := range transferLengths {
		for j, offset := range pageOffsets {
			seed := uint64(i*100 + j)
			before := sink.Stats().Unaligned
			e.sendPattern(sink, n, offset, seed)
			require.Equal(e, n > 0 && offset%8 != 0, sink.Stats().Unaligned > before, "size %d offset %d", n, offset)
			_, count, hash := e.sinkStat(sink)
			sum += uint64(n)
			require.Equal(e, sum, count, "size %d offset %d", n, offset)
			want := NewBuffer(n, 0)
			pattern.Fill(want.Data, 0, seed)
			require.Equal(e, pattern.FNV(pattern.FNVOffset, want.Data), hash, "size %d offset %d", n, offset)
			e.receivePattern(source, n, offset, seed)
		}
	}
}

// sendPattern sends n bytes of the pattern to a sink.
func (e *Env) sendPattern(sink bridge.Channel, n, offset int, seed uint64) {
	e.Helper()
	b := NewBuffer(n, offset)
	pattern.Fill(b.Data, 0, seed)
	require.NoError(e, sink.SendInd(e.Ctx(), b.Data), "size %d offset %d", n, offset)
	require.Negative(e, pattern.Diff(b.Data, 0, seed), "source changed")
	e.Check(b)
}

// receivePattern gets n bytes of the pattern from a source.
func (e *Env) receivePattern(source bridge.Channel, n, offset int, seed uint64) {
	e.Helper()
	b := NewBuffer(n, offset)
	e.send(source, pattern.Words(uint64(n), seed))
	require.NoError(e, source.ReceiveInd(e.Ctx(), b.Data), "size %d offset %d", n, offset)
	require.Negative(e, pattern.Diff(b.Data, 0, seed), "size %d offset %d", n, offset)
	e.Check(b)
}

// transferLarge: 64 MiB each way.
func transferLarge(e *Env) {
	dev := e.device("emem=256MiB")
	sink, source := e.Ports(dev, "sink", 1)[0], e.Ports(dev, "source", 1)[0]
	const n = 64 << 20
	data := e.pages(n)
	pattern.Fill(data, 0, 7)
	require.NoError(e, sink.SendInd(e.Ctx(), data))
	_, count, hash := e.sinkStat(sink)
	require.Equal(e, uint64(n), count)
	require.Equal(e, pattern.FNV(pattern.FNVOffset, data), hash)
	clear(data)
	e.send(source, pattern.Words(n, 99))
	require.NoError(e, source.ReceiveInd(e.Ctx(), data))
	require.Negative(e, pattern.Diff(data, 0, 99))
}

// pages maps n bytes of zeroed memory outside the Go heap until the test ends.
func (e *Env) pages(n int) []byte {
	e.Helper()
	mem, err := mapMemory(n)
	require.NoError(e, err)
	e.Cleanup(func() { _ = unmapMemory(mem) })
	preferHugePages(mem)
	return mem
}

// transferService: the loopback service returns transfers as well.
func transferService(e *Env) {
	ch := e.Subscribe(e.device(""), abi.TargetLoopback)
	for _, n := range []int{0, 1, 4096, 100_000} {
		e.EchoInd(ch, n, uint64(n))
	}
}

// EchoInd sends a transfer to a loopback and checks the answer.
func (e *Env) EchoInd(ch bridge.Channel, n int, seed uint64) {
	e.Helper()
	require.NoError(e, echoTransfer(e.Ctx(), ch, n, seed))
}

// echoTransfer is echoInd for goroutines that must not end the test.
func echoTransfer(ctx context.Context, ch bridge.Channel, n int, seed uint64) error {
	b := make([]byte, n)
	pattern.Fill(b, 0, seed)
	if err := ch.SendInd(ctx, b); err != nil {
		return fmt.Errorf("send %d bytes: %w", n, err)
	}
	clear(b)
	if err := ch.ReceiveInd(ctx, b); err != nil {
		return fmt.Errorf("receive %d bytes: %w", n, err)
	}
	if i := pattern.Diff(b, 0, seed); i >= 0 {
		return fmt.Errorf("byte %d of %d differs", i, n)
	}
	return nil
}

// transferChecksums: transfers with checksums arrive as those without. A back end, or a device, that
// has none refuses them, and nothing changes.
func transferChecksums(e *Env) {
	ch := e.Ports(e.device(""), "loopback", 1)[0]
	err := bridge.ErrNotSupported
	if v, ok := ch.(interface{ Verify(on bool) error }); ok {
		err = v.Verify(true)
	}
	if err != nil {
		require.ErrorIs(e, err, bridge.ErrNotSupported)
	}
	for i, n := range transferLengths {
		before := ch.Stats()
		e.EchoInd(ch, n, uint64(i))
		if err == nil && n > 0 {
			require.Greater(e, ch.Stats().Lists, before.Lists, "size %d is not eager", n)
		}
	}
	require.Zero(e, ch.Stats().Corrupt)
}

// transferMixed: messages and transfers keep their order on one channel.
func transferMixed(e *Env) {
	ch := e.Ports(e.device(""), "loopback", 1)[0]
	for i := range max(20, Scaled(400)) {
		if i%3 == 0 {
			e.Echo(ch, pattern.Words(uint64(i)))
		} else {
			e.EchoInd(ch, i*97, uint64(i))
		}
	}
}

// transferConcurrent: transfers on many channels at once do not mix.
func transferConcurrent(e *Env) {
	dev := e.device("managers=4&islands=2")
	var calls []*Pending
	for i, ch := range e.Ports(dev, "loopback", 8) {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		calls = append(calls, Call("transfers", func() error {
			for range max(5, Scaled(50)) {
				if err := echoTransfer(e.Ctx(), ch, random.IntN(300_000), random.Uint64()); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, p := range calls {
		require.NoError(e, e.Wait(p))
	}
}

// transferBothWays: one channel moves a transfer each way at the same time.
func transferBothWays(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	const rounds, n = 20, 200_000
	p := Call("sender", func() error {
		b := make([]byte, n)
		for i := range uint64(rounds) {
			pattern.Fill(b, 0, i)
			if err := ch.SendInd(e.Ctx(), b); err != nil {
				return err
			}
		}
		return nil
	})
	got := make([]byte, n)
	for i := range uint64(rounds) {
		require.NoError(e, ch.ReceiveInd(e.Ctx(), got))
		require.Negative(e, pattern.Diff(got, 0, i), "round %d", i)
	}
	require.NoError(e, e.Wait(p))
}

// transferSmallWindow: the smallest window still moves everything, and in
// order.
func transferSmallWindow(e *Env) {
	for _, window := range []int{1, 2, 4} {
		dev := e.device(fmt.Sprintf("window=%d&slots=16", window))
		require.LessOrEqual(e, dev.Info().Window, window)
		ch := e.Ports(dev, "loopback", 1)[0]
		for _, n := range []int{1, 6 * 4096, 6*4096 + 1, 500_001} {
			e.EchoInd(ch, n, uint64(window))
		}
		require.NoError(e, dev.Close())
	}
}

// transferAbort: when a cancelled transfer has returned, the device touches the
// buffer no more, whatever it does afterwards.
func transferAbort(e *Env) {
	dev := e.device("emem=256MiB")
	sink, source := e.Ports(dev, "sink", 1)[0], e.Ports(dev, "source", 1)[0]
	const n = 16 << 20
	for range max(4, Scaled(20)) {
		e.abortSend(sink, n)
		e.abortReceive(source, n)
	}
}

// abortSend takes the source pages away after the cancelled call: a device that
// reads them later is caught by the memory management unit.
func (e *Env) abortSend(sink bridge.Channel, n int) {
	e.Helper()
	mem := e.pages(n)
	err := e.cancelMoving(sink, func(ctx context.Context) error { return sink.SendInd(ctx, mem) })
	if err != nil {
		require.ErrorIs(e, err, context.Canceled)
	}
	require.NoError(e, protect(mem, noAccess))
	e.sendPattern(sink, 1<<20, 0, 5)
}

// abortReceive overwrites the destination after the cancelled call and looks
// whether that stays.
func (e *Env) abortReceive(source bridge.Channel, n int) {
	e.Helper()
	mem := e.pages(n)
	e.send(source, pattern.Words(uint64(n), 1))
	err := e.cancelMoving(source, func(ctx context.Context) error { return source.ReceiveInd(ctx, mem) })
	for i := range mem {
		mem[i] = canary
	}
	if err != nil {
		require.ErrorIs(e, err, context.Canceled)
		e.drain(source)
	}
	e.receivePattern(source, 1<<20, 0, 5)
	require.Negative(e, firstNot(mem, canary), "written after the call returned")
}

// cancelMoving makes a call and cancels it as soon as lists were sent.
func (e *Env) cancelMoving(ch bridge.Channel, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(e.Ctx())
	var wg sync.WaitGroup
	before := ch.Stats().Lists
	p := Call("transfer", func() error { return f(ctx) })
	wg.Go(func() {
		for ch.Stats().Lists == before && !p.Over() {
			runtime.Gosched()
		}
		cancel()
	})
	wg.Wait()
	return e.Wait(p)
}

// drain takes what is still offered if the cancelled receive never started it:
// the answer to the next request is preceded by at most one old offer.
func (e *Env) drain(source bridge.Channel) {
	e.Helper()
	p := Call("request", func() error { return source.Send(e.Ctx(), pattern.Words(1, 77)) })
	for {
		o, err := source.Next(e.Ctx())
		require.NoError(e, err)
		b := make([]byte, o.Size)
		require.NoError(e, source.ReceiveInd(e.Ctx(), b))
		if bytes.Equal(b, []byte{pattern.Byte(0, 77)}) {
			require.NoError(e, e.Wait(p))
			return
		}
	}
}

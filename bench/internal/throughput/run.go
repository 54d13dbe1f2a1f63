package throughput

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// bulkTest moves the payload there and back.
type bulkTest struct {
	chans     []*nfcomms.Channel
	sent, got []byte
	tests     uint64 // run so far: each moves other bytes
	sums      bool   // each moves them with checksums, too
	// staging stands for the device's memory in the memcpy beside.
	staging []byte
}

// exchange is what one test took.
type exchange struct {
	moved    [2]time.Duration // by direction, in the calls alone
	summed   [2]time.Duration // the same with checksums, if those were asked for
	sumCPU   time.Duration    // … both directions
	copied   [2]time.Duration // memcpy of the same messages
	cpu      time.Duration    // both directions
	compared int              // bytes that came back and are what was sent
}

// run moves the payload in messages of size bytes over the given number of
// targets, and compares every byte afterwards.
func (b *bulkTest) run(ctx context.Context, targets, size int) (e exchange, err error) {
	if b.sums {
		summed, err := b.withSums(ctx, targets, size)
		if err != nil {
			return e, err
		}
		e.summed, e.sumCPU = summed.moved, summed.cpu
	}
	if err := b.move(ctx, &e, targets, size); err != nil {
		return e, err
	}
	for off := 0; off < len(b.sent); off += size {
		end := min(off+size, len(b.sent))
		t := time.Now()
		copy(b.staging, b.sent[off:end])
		e.copied[0] += time.Since(t)
		t = time.Now()
		copy(b.got[off:end], b.staging)
		e.copied[1] += time.Since(t)
	}
	return e, nil
}

// withSums moves the payload with checksums.
func (b *bulkTest) withSums(ctx context.Context, targets, size int) (e exchange, err error) {
	for _, ch := range b.chans {
		if err := ch.Verify(true); err != nil {
			return e, err
		}
	}
	err = b.move(ctx, &e, targets, size)
	for _, ch := range b.chans {
		err = errors.Join(err, ch.Verify(false))
	}
	return e, err
}

// move moves other bytes than before there and back, and compares them.
func (b *bulkTest) move(ctx context.Context, e *exchange, targets, size int) error {
	b.tests++
	compare.FillPattern(b.sent, b.tests)
	clear(b.got)
	cpu := cli.CPUTime()
	for off := 0; off < len(b.sent); off += targets * size {
		end := min(off+targets*size, len(b.sent))
		chans := b.chans[:(end-off+size-1)/size]
		if err := e.group(ctx, b.sent[off:end], b.got[off:end], chans); err != nil {
			return err
		}
	}
	e.cpu = cli.CPUTime() - cpu
	if e.compared = compare.SamePrefix(b.sent, b.got); e.compared < len(b.sent) {
		return fmt.Errorf("data came back changed: %s over %d targets: byte %d of %d differs",
			cli.SizeText(size), targets, e.compared, len(b.sent))
	}
	return nil
}

// group sends one message per channel and takes them back.
func (e *exchange) group(ctx context.Context, sent, got []byte, chans []*nfcomms.Channel) error {
	send := func() error { return nfcomms.SendStriped(ctx, sent, len(sent), chans...) }
	receive := func() error {
		_, err := nfcomms.ReceiveStriped(ctx, got, len(got), chans...)
		return err
	}
	if len(chans) == 1 {
		send = func() error { return chans[0].SendInd(ctx, sent, len(sent)) }
		receive = func() error {
			_, err := chans[0].ReceiveInd(ctx, got, len(got))
			return err
		}
	}
	for i, call := range []func() error{send, receive} {
		d, err := compare.Timed(call)
		if err != nil {
			return err
		}
		e.moved[i] += d
	}
	return nil
}

// newBulkTest starts as many loopback processes as will be needed.
func newBulkTest(ctx context.Context, dev *nfcomms.Device, p Plan) (*bulkTest, error) {
	b := &bulkTest{
		sums: p.Checksums,
		sent: compare.Buffer(p.Payload), got: compare.Buffer(p.Payload), staging: compare.Buffer(p.Sizes[len(p.Sizes)-1]),
	}
	for range p.Targets[len(p.Targets)-1] {
		proc, err := compare.Start(ctx, dev, "loopback", 1)
		if err != nil {
			return nil, err
		}
		b.chans = append(b.chans, proc.Chans...)
	}
	return b, nil
}

// point collects the tests of one size and one number of targets.
type point struct {
	targets, size int
	tests         []exchange
}

// Measure runs all tests, one of every point after the other, and leaves
// out the first of each. The device's processes end with the device.
func Measure(ctx context.Context, dev *nfcomms.Device, p Plan, errw io.Writer) (*Report, error) {
	r := &Report{Header: cli.NewHeader("throughput", dev), Payload: p.Payload, Tests: p.Tests}
	b, err := newBulkTest(ctx, dev, p)
	if err != nil {
		return nil, err
	}
	d, err := newDirectTest(ctx, dev)
	if err != nil {
		return nil, err
	}
	var points []*point
	for _, targets := range p.Targets {
		for _, size := range p.Sizes {
			points = append(points, &point{targets: targets, size: size})
		}
	}
	bar := cli.NewProgress(errw, (p.Tests+1)*(len(points)+1), "throughput")
	defer bar.Done()
	w := cli.NewWatch(cli.CPUTime())
	for test := range p.Tests + 1 {
		warmUp := test == 0
		if err := d.run(ctx, p.Direct, warmUp); err != nil {
			return nil, err
		}
		bar.Step("direct messages")
		for _, pt := range points {
			e, err := b.run(ctx, pt.targets, pt.size)
			if err != nil {
				return nil, err
			}
			if !warmUp {
				pt.tests = append(pt.tests, e)
			}
			bar.Step(ConfigText(cli.SizeText(pt.size), pt.targets))
		}
	}
	r.Busy = w.Busy(cli.CPUTime(), nil)
	r.conclude(p, points, d)
	return r, nil
}

// directTest streams messages of 56 bytes.
type directTest struct {
	sink  *compare.Program
	flood *compare.Producer
	sent  uint64 // messages that the sink must have taken
	got   []byte // what was received, one message after the other
	mbit  [2][]float64
}

func newDirectTest(ctx context.Context, dev *nfcomms.Device) (*directTest, error) {
	s, err := compare.Start(ctx, dev, "sink", 1)
	if err != nil {
		return nil, err
	}
	f, err := compare.NewProducer(ctx, dev)
	if err != nil {
		return nil, err
	}
	return &directTest{sink: s, flood: f}, nil
}

// run moves n messages each way, and checks afterwards that all arrived.
func (d *directTest) run(ctx context.Context, n int, warmUp bool) error {
	msg := compare.Buffer(compare.MessageSize)
	d.got = slices.Repeat([]byte{0xff}, n*compare.MessageSize) // flood sends zeros
	sent, err := compare.Timed(func() error {
		for range n {
			if err := d.sink.Chans[0].Send(ctx, msg); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.flood.Messages(ctx, n, compare.MessageSize); err != nil {
		return err
	}
	got, err := compare.Timed(func() error {
		for rest := d.got; len(rest) > 0; rest = rest[compare.MessageSize:] {
			if _, err := d.flood.Ch.Receive(ctx, rest[:compare.MessageSize]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = d.arrived(ctx, n)
	}
	if err != nil || warmUp {
		return err
	}
	for i, took := range []time.Duration{sent, got} {
		d.mbit[i] = append(d.mbit[i], 8e3*cli.GBs(n*compare.MessageSize, took))
	}
	return nil
}

// arrived checks that the sink counted the n messages of a run, and that each
// one received has all its bytes.
func (d *directTest) arrived(ctx context.Context, n int) error {
	d.sent += uint64(n)
	if err := d.sink.Chans[0].Send(ctx, []byte("SINKSTAT")); err != nil {
		return err
	}
	var answer [24]byte // messages, bytes of transfers, their hash
	if _, err := d.sink.Chans[0].Receive(ctx, answer[:]); err != nil {
		return err
	}
	if taken := binary.LittleEndian.Uint64(answer[:]); taken != d.sent {
		return fmt.Errorf("the device took %d direct messages of %d", taken, d.sent)
	}
	if i := compare.SamePrefix(make([]byte, len(d.got)), d.got); i < len(d.got) {
		return fmt.Errorf("direct message %d came changed: byte %d differs", i/compare.MessageSize, i%compare.MessageSize)
	}
	return nil
}

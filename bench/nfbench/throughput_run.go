package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// bulkTest moves the payload there and back.
type bulkTest struct {
	chans     []*nfcomms.Channel
	sent, got []byte
	tests     uint64 // run so far: each moves other bytes
	// staging stands for the device's memory in the memcpy beside.
	staging []byte
}

// exchange is what one test took.
type exchange struct {
	moved    [2]time.Duration // by direction, in the calls alone
	copied   [2]time.Duration // memcpy of the same messages
	cpu      time.Duration    // both directions
	compared int              // bytes that came back and are what was sent
}

// run moves the payload in messages of size bytes over the given number of
// targets, and compares every byte afterwards.
func (b *bulkTest) run(ctx context.Context, targets, size int) (e exchange, err error) {
	b.tests++
	fillPattern(b.sent, b.tests)
	clear(b.got)
	cpu := cpuTime()
	for off := 0; off < len(b.sent); off += targets * size {
		end := min(off+targets*size, len(b.sent))
		chans := b.chans[:(end-off+size-1)/size]
		if err := e.group(ctx, b.sent[off:end], b.got[off:end], chans); err != nil {
			return e, err
		}
	}
	e.cpu = cpuTime() - cpu
	if e.compared = samePrefix(b.sent, b.got); e.compared < len(b.sent) {
		return e, fmt.Errorf("data came back changed: %s over %d targets: byte %d of %d differs",
			sizeText(size), targets, e.compared, len(b.sent))
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
		d, err := timed(call)
		if err != nil {
			return err
		}
		e.moved[i] += d
	}
	return nil
}

// newBulkTest starts as many loopback processes as will be needed.
func newBulkTest(ctx context.Context, dev *nfcomms.Device, p throughputPlan) (*bulkTest, error) {
	b := &bulkTest{
		sent: buffer(p.payload), got: buffer(p.payload), staging: buffer(p.sizes[len(p.sizes)-1]),
	}
	for range p.targets[len(p.targets)-1] {
		proc, err := start(ctx, dev, "loopback", 1)
		if err != nil {
			return nil, err
		}
		b.chans = append(b.chans, proc.chans...)
	}
	return b, nil
}

// point collects the tests of one size and one number of targets.
type point struct {
	targets, size int
	tests         []exchange
}

// throughput runs all tests, one of every point after the other, and leaves
// out the first of each. The device's processes end with the device.
func throughput(ctx context.Context, dev *nfcomms.Device, p throughputPlan, errw io.Writer) (*ThroughputReport, error) {
	r := &ThroughputReport{Header: newHeader("throughput", dev), Payload: p.payload, Tests: p.tests}
	b, err := newBulkTest(ctx, dev, p)
	if err != nil {
		return nil, err
	}
	d, err := newDirectTest(ctx, dev)
	if err != nil {
		return nil, err
	}
	var points []*point
	for _, targets := range p.targets {
		for _, size := range p.sizes {
			points = append(points, &point{targets: targets, size: size})
		}
	}
	bar := newProgress(errw, (p.tests+1)*(len(points)+1), "throughput")
	defer bar.done()
	w := newWatch(cpuTime())
	for test := range p.tests + 1 {
		warmUp := test == 0
		if err := d.run(ctx, p.direct, warmUp); err != nil {
			return nil, err
		}
		bar.step("direct messages")
		for _, pt := range points {
			e, err := b.run(ctx, pt.targets, pt.size)
			if err != nil {
				return nil, err
			}
			if !warmUp {
				pt.tests = append(pt.tests, e)
			}
			bar.step(configText(sizeText(pt.size), pt.targets))
		}
	}
	r.Busy = w.busy(cpuTime(), nil)
	r.conclude(p, points, d)
	return r, nil
}

// directTest streams messages of 56 bytes.
type directTest struct {
	sink  *program
	flood *producer
	sent  uint64 // messages that the sink must have taken
	got   []byte // what was received, one message after the other
	mbit  [2][]float64
}

func newDirectTest(ctx context.Context, dev *nfcomms.Device) (*directTest, error) {
	s, err := start(ctx, dev, "sink", 1)
	if err != nil {
		return nil, err
	}
	f, err := newProducer(ctx, dev)
	if err != nil {
		return nil, err
	}
	return &directTest{sink: s, flood: f}, nil
}

// run moves n messages each way, and checks afterwards that all arrived.
func (d *directTest) run(ctx context.Context, n int, warmUp bool) error {
	msg := buffer(messageSize)
	d.got = slices.Repeat([]byte{0xff}, n*messageSize) // flood sends zeros
	sent, err := timed(func() error {
		for range n {
			if err := d.sink.chans[0].Send(ctx, msg); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.flood.messages(ctx, n, messageSize); err != nil {
		return err
	}
	got, err := timed(func() error {
		for rest := d.got; len(rest) > 0; rest = rest[messageSize:] {
			if _, err := d.flood.ch.Receive(ctx, rest[:messageSize]); err != nil {
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
		d.mbit[i] = append(d.mbit[i], 8e3*gbs(n*messageSize, took))
	}
	return nil
}

// arrived checks that the sink counted the n messages of a run, and that each
// one received has all its bytes.
func (d *directTest) arrived(ctx context.Context, n int) error {
	d.sent += uint64(n)
	if err := d.sink.chans[0].Send(ctx, []byte("SINKSTAT")); err != nil {
		return err
	}
	var answer [24]byte // messages, bytes of transfers, their hash
	if _, err := d.sink.chans[0].Receive(ctx, answer[:]); err != nil {
		return err
	}
	if taken := binary.LittleEndian.Uint64(answer[:]); taken != d.sent {
		return fmt.Errorf("the device took %d direct messages of %d", taken, d.sent)
	}
	if i := samePrefix(make([]byte, len(d.got)), d.got); i < len(d.got) {
		return fmt.Errorf("direct message %d came changed: byte %d differs", i/messageSize, i%messageSize)
	}
	return nil
}

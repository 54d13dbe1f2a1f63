package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"time"

	"github.com/axiomhq/hyperloglog"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Sizes of the sketches, as in device/pcsa.c.
const (
	indexBits = 11
	sketches  = 1 << indexBits
	bias      = 0.77351 // φ of Flajolet and Martin
)

// key names a flow; the last byte is how many of the others count.
type key [38]byte

func (k *key) bytes() []byte { return k[:k[37]] }

// keys finds the flows of frames.
type keys struct {
	ethernet layers.Ethernet
	vlan     layers.Dot1Q
	ip4      layers.IPv4
	ip6      layers.IPv6
}

// of returns the flow of a frame: addresses, protocol, and ports where it has them.
func (d *keys) of(frame []byte) (k key, is bool) {
	if d.ethernet.DecodeFromBytes(frame, gopacket.NilDecodeFeedback) != nil {
		return k, false
	}
	kind, rest := d.ethernet.EthernetType, d.ethernet.Payload
	if kind == layers.EthernetTypeDot1Q && d.vlan.DecodeFromBytes(rest, gopacket.NilDecodeFeedback) == nil {
		kind, rest = d.vlan.Type, d.vlan.Payload
	}
	switch kind {
	case layers.EthernetTypeIPv4:
		if d.ip4.DecodeFromBytes(rest, gopacket.NilDecodeFeedback) != nil {
			return k, false
		}
		payload := d.ip4.Payload
		if d.ip4.NextLayerType() == gopacket.LayerTypeFragment {
			payload = nil // the first fragment has ports, but the others do not
		}
		k.fill(payload, d.ip4.Protocol, d.ip4.SrcIP, d.ip4.DstIP)
	case layers.EthernetTypeIPv6:
		err := d.ip6.DecodeFromBytes(rest, gopacket.NilDecodeFeedback)
		extended := d.ip6.NextHeader == layers.IPProtocolIPv6HopByHop // which may be what is wrong
		if len(rest) < 40 || d.ip6.Length == 0 || err != nil && !extended {
			return k, false
		}
		k.fill(d.ip6.Payload, d.ip6.NextHeader, d.ip6.SrcIP, d.ip6.DstIP)
	default:
		return k, false
	}
	return k, true
}

func (k *key) fill(payload []byte, protocol layers.IPProtocol, addresses ...[]byte) {
	b := k[:0]
	for _, a := range addresses {
		b = append(b, a...)
	}
	b = append(b, byte(protocol))
	tcp := protocol == layers.IPProtocolTCP && len(payload) >= 20
	if tcp || protocol == layers.IPProtocolUDP && len(payload) >= 8 {
		b = append(b, payload[:4]...)
	} else {
		b = binary.BigEndian.AppendUint32(b, 0)
	}
	k[37] = byte(len(b))
}

// peers are the other ways to count, and the time that each took.
type peers struct {
	flows            map[key]struct{}
	log              *hyperloglog.Sketch
	sketch           [sketches]uint32
	packets, skipped uint64

	decoding, mapping, logging, sketching time.Duration
}

// count counts a stream in all ways.
func (p *peers) count(ctx context.Context, in packets) error {
	p.flows, p.log = map[key]struct{}{}, hyperloglog.New14()
	var find keys
	some := make([]key, 0, 4096) // as many as are timed at once
	for end := false; !end; {
		some = some[:0]
		start := time.Now()
		for !end && len(some) < cap(some) {
			frame, err := in.next()
			if end = err == io.EOF; end {
				break
			}
			if err != nil {
				return err
			}
			if k, is := find.of(frame); is {
				some = append(some, k)
			} else {
				p.skipped++
			}
		}
		p.decoding += time.Since(start)
		p.add(some)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// add counts flows in each way.
func (p *peers) add(some []key) {
	p.packets += uint64(len(some))
	timed := func(total *time.Duration, one func(k *key)) {
		start := time.Now()
		for i := range some {
			one(&some[i])
		}
		*total += time.Since(start)
	}
	timed(&p.mapping, func(k *key) { p.flows[*k] = struct{}{} })
	timed(&p.logging, func(k *key) { p.log.Insert(k.bytes()) })
	timed(&p.sketching, p.update)
}

// update is PCSA as on the device.
func (p *peers) update(k *key) {
	h := crc32.ChecksumIEEE(k.bytes())
	p.sketch[h>>(32-indexBits)] |= 1 << bits.TrailingZeros32(^(h & (1<<(32-indexBits) - 1)))
}

func (p *peers) exact() uint64 { return uint64(len(p.flows)) }

// sum is what the handler on the device sums up.
func (p *peers) sum() (sum uint64) {
	for _, s := range p.sketch {
		sum += uint64(bits.TrailingZeros32(^s))
	}
	return sum
}

// estimate is M/φ · 2^(mean of the trailing ones), the paper's equation 2.
func estimate(sum, number uint64) float64 {
	return float64(number) / bias * math.Exp2(float64(sum)/float64(number))
}

// theory is the standard error of so many sketches.
func theory(number uint64) float64 { return 0.78 / math.Sqrt(float64(number)) }

// errorOf is the relative error of an estimate.
func (r run) errorOf(estimate float64) float64 {
	if r.peers.exact() == 0 {
		return 0
	}
	return estimate/float64(r.peers.exact()) - 1
}

// deviceErrors are those of all runs on the device.
func deviceErrors(runs []run) (list []float64) {
	for _, r := range runs {
		list = append(list, r.errorOf(estimate(r.answer.Sum, r.answer.Sketches)))
	}
	return list
}

// allowed is what the error of so many streams may be: 2 %, or what chance makes of
// the standard error in one of several hundred tries.
func allowed(streams int) float64 {
	return max(0.02, theory(sketches)*(1+3/math.Sqrt(2*float64(streams))))
}

func rms(list []float64) (sum float64) {
	for _, e := range list {
		sum += e * e / float64(len(list))
	}
	return math.Sqrt(sum)
}

func most(list []float64) (m float64) {
	for _, e := range list {
		m = max(m, math.Abs(e))
	}
	return m
}

// check compares the device with the same sketches in Go.
func (r run) check() error {
	want := answer{r.peers.sum(), sketches, r.peers.packets, r.peers.skipped, r.answer.Shared}
	if r.answer != want {
		return fmt.Errorf("%w: the device has %+v, Go %+v", errDiffer, r.answer, want)
	}
	return nil
}

// errDiffer means that the device counted other packets, or in another way.
var errDiffer = errors.New("device and Go differ")

// print writes the ways to count and what each found.
func (r run) print(w io.Writer) {
	packets := float64(max(r.answer.Packets+r.answer.Skipped, 1))
	row := func(name string, flows float64, d time.Duration) {
		fmt.Fprintf(w, "%-16s %11.0f  %+6.2f %%   %9.0f\n", name, flows, 100*r.errorOf(flows), float64(d)/packets)
	}
	row("device, PCSA", estimate(r.answer.Sum, r.answer.Sketches), r.device.wall)
	row("Go, PCSA", estimate(r.peers.sum(), sketches), r.peers.decoding+r.peers.sketching)
	row("Go, exact map", float64(r.peers.exact()), r.peers.decoding+r.peers.mapping)
	row("Go, HyperLogLog", float64(r.peers.log.Estimate()), r.peers.decoding+r.peers.logging)
	fmt.Fprintf(w, "\nthe device's time is that of streaming, counting and asking, with all threads of this process;\n")
	fmt.Fprintf(w, "it used %.2f s CPU in %.2f s\n", r.device.cpu.Seconds(), r.device.wall.Seconds())
}

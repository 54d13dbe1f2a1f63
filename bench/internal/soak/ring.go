//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

func newSoakWrite() *cobra.Command { return soakCommand(soakWriteCommand, soakWrite) }
func newSoakRead() *cobra.Command  { return soakCommand(soakReadCommand, soakRead) }

// soakHead is the start of each packet: its number and the sum of the rest.
const soakHead = 12

// castagnoli is of CRC32C, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// soakFill writes packet n: length and bytes follow from n and the seed.
func soakFill(p []byte, seed, n uint64) int {
	p = p[:soakHead+int((n+seed)*0x9e3779b97f4a7c15>>33)%(len(p)-soakHead)]
	binary.LittleEndian.PutUint64(p, n)
	compare.FillPattern(p[soakHead:], seed<<20+n)
	binary.LittleEndian.PutUint32(p[8:], crc32.Checksum(p[soakHead:], castagnoli))
	return len(p)
}

// soakCheck returns what is wrong with packet n.
func soakCheck(p []byte, n uint64) string {
	if len(p) < soakHead {
		return fmt.Sprintf("packet %d has %d bytes", n, len(p))
	}
	if number := binary.LittleEndian.Uint64(p); number != n {
		return fmt.Sprintf("packet %d says it is %d", n, number)
	}
	if crc32.Checksum(p[soakHead:], castagnoli) != binary.LittleEndian.Uint32(p[8:]) {
		return fmt.Sprintf("packet %d of %d bytes has another sum", n, len(p))
	}
	return ""
}

// soakWhy names the end of a side.
func soakWhy(err error) string {
	switch {
	case errors.Is(err, ring.EOF), errors.Is(err, ring.ErrReaderClosed):
		return soakClosed
	case errors.Is(err, ring.ErrPeerDied):
		return soakPeerDied
	}
	return err.Error()
}

// soakWrite writes packets until it is asked to end or the reader does.
func soakWrite(ctx context.Context, j *soakJob, ready func(), asked <-chan struct{}) (end soakEnd) {
	r, err := ring.Open(ctx, j.Ring, ring.Options{})
	if err != nil {
		return soakEnd{Why: err.Error()}
	}
	w, err := r.Writer(ctx)
	if err != nil {
		return soakEnd{Why: err.Error()}
	}
	ready()
	for {
		select {
		case <-asked:
			if err := errors.Join(w.Flush(ctx), w.Close()); err != nil {
				end.Why = soakWhy(err)
				return end
			}
			end.Why = soakAsked
			return end
		default:
		}
		p := w.Reserve()
		if p == nil {
			end.Why = "the ring is of no use any more"
			return end
		}
		n := soakFill(p, j.Seed, end.Operations)
		if j.Spoil > 0 && end.Operations%j.Spoil == j.Spoil-1 {
			p[8]++
		}
		if err := w.Commit(ctx, n); err != nil {
			end.Why = soakWhy(err)
			return end
		}
		end.Operations++
		end.Bytes += uint64(n)
	}
}

// soakRead checks packets to the end of the stream.
func soakRead(ctx context.Context, j *soakJob, ready func(), _ <-chan struct{}) (end soakEnd) {
	r, err := ring.Open(ctx, j.Ring, ring.Options{})
	if err != nil {
		return soakEnd{Why: err.Error()}
	}
	d, err := r.Reader(ctx)
	if err != nil {
		return soakEnd{Why: err.Error()}
	}
	ready()
	for {
		p, err := d.Peek(ctx)
		if err != nil {
			end.Why = soakWhy(err)
			return end
		}
		if end.Wrong = soakCheck(p, end.Operations); end.Wrong != "" {
			end.Why = soakAsked
			return end
		}
		end.Operations++
		end.Bytes += uint64(len(p))
		d.Release()
	}
}

// soakedRing soaks a ring of this process, whose sides are other processes.
type soakedRing struct {
	o      *options
	ring   *ring.Ring
	reader *soakProcess
	writer *soakProcess
}

// Faults of a ring.
const (
	faultWriter  = "writer killed"
	faultReader  = "reader killed"
	faultCreator = "creator gone"
	faultClose   = "writer closed"
	faultFrozen  = "process stopped for a moment"
)

// shape draws the sizes of the next ring: small ones, whose sides wait for each other.
func (s *soakedRing) shape(chance *rand.Rand) ring.Config {
	primes := []int{3, 5, 7, 13, 61, 251}
	return ring.Config{Packets: primes[chance.IntN(len(primes))], PacketSize: (1 + chance.IntN(4)) * os.Getpagesize()}
}

// begin starts both sides, on a ring that is there or a new one, in any order.
func (s *soakedRing) begin(b *Books, chance *rand.Rand) (err error) {
	if s.ring == nil {
		if s.ring, err = ring.Create(fmt.Sprintf("soak-%d", os.Getpid()), s.shape(chance)); err != nil {
			return err
		}
	}
	j := soakJob{Ring: s.ring.Name(), Seed: b.Seed + b.Rounds, Spoil: s.o.spoil}
	start := []func(){
		func() { s.reader, err = startSoak(soakReadCommand, j) },
		func() { s.writer, err = startSoak(soakWriteCommand, j) },
	}
	first := chance.IntN(2)
	if start[first](); err == nil {
		start[1-first]()
	}
	if err == nil {
		err = errors.Join(s.reader.ready(), s.writer.ready())
	}
	return err
}

// round plays a round with faults that are drawn.
func (s *soakedRing) round(ctx context.Context, b *Books, chance *rand.Rand, length time.Duration) error {
	kinds := []string{faultWriter, faultReader, faultCreator, faultClose}
	return s.play(ctx, b, chance, kinds[chance.IntN(len(kinds))], chance.IntN(2) == 0, length)
}

// play lets both sides go, stops one for a moment if it is to be frozen, injects a fault, and
// closes the books.
func (s *soakedRing) play(ctx context.Context, b *Books, chance *rand.Rand, fault string, frozen bool, length time.Duration) error {
	s.reader, s.writer = nil, nil
	defer func() {
		for _, p := range []*soakProcess{s.reader, s.writer} {
			if p != nil {
				p.leave()
			}
		}
	}()
	if err := s.begin(b, chance); err != nil {
		return err
	}
	soakSleep(ctx, length/2)
	if frozen {
		[]*soakProcess{s.reader, s.writer}[chance.IntN(2)].freeze(min(length/4, 50*time.Millisecond))
		b.fault(faultFrozen)
	}
	soakSleep(ctx, length/2)
	switch fault {
	case faultWriter:
		return s.killWriter(b)
	case faultReader:
		return s.killReader(b)
	case faultCreator:
		return s.closeCreator(b)
	}
	return s.closeWriter(b)
}

// ended takes what a side came to, and books an end that is not the one expected.
func (s *soakedRing) ended(b *Books, p *soakProcess, side, want string) soakEnd {
	end, err := p.end()
	b.ended(side, end, err, want)
	return end
}

// published is how many packets were, by the heads, handed over and released. The
// sides hold their roles still.
func (s *soakedRing) published() (written, released uint64, err error) {
	st, err := s.ring.Stats()
	written = uint64(max(st.Writer, 0))
	return written, written - st.Lag, err
}

// killWriter: what it published is read, all of it.
func (s *soakedRing) killWriter(b *Books) error {
	b.fault(faultWriter)
	s.writer.kill()
	got := s.ended(b, s.reader, "reader", soakPeerDied)
	written, _, err := s.published()
	s.count(b, got, written)
	return err
}

// killReader: the writer sees it, and what was released was right.
func (s *soakedRing) killReader(b *Books) error {
	b.fault(faultReader)
	s.reader.kill()
	if got, err := s.reader.end(); err == nil { // it had ended before
		b.wrong("reader: %s%s", got.Wrong, got.Why)
	}
	sent := s.ended(b, s.writer, "writer", soakPeerDied)
	written, released, err := s.published()
	if written != sent.Operations {
		b.wrong("the writer published %d packets, its head says %d", sent.Operations, written)
	}
	if written > 0 {
		b.Operations += released
		b.Bytes += sent.Bytes / written * released
	}
	return err
}

// closeWriter: the stream ends, and nothing of it is lost.
func (s *soakedRing) closeWriter(b *Books) error {
	b.fault(faultClose)
	s.writer.ask()
	sent := s.ended(b, s.writer, "writer", soakAsked)
	s.count(b, s.ended(b, s.reader, "reader", soakClosed), sent.Operations)
	return nil
}

// closeCreator: both sides see it, and the reader has all but what the writer
// published afterwards, less than a ring holds.
func (s *soakedRing) closeCreator(b *Books) error {
	b.fault(faultCreator)
	most := int64(s.ring.Packets())
	err := s.close()
	sent := s.ended(b, s.writer, "writer", soakPeerDied)
	got := s.ended(b, s.reader, "reader", soakPeerDied)
	s.count(b, got, got.Operations)
	if more := int64(sent.Operations - got.Operations); more < 0 || more >= most {
		b.wrong("the reader has %d packets of %d, in a ring of %d", got.Operations, sent.Operations, most)
	}
	return err
}

// count books what a reader got of what was published.
func (s *soakedRing) count(b *Books, got soakEnd, published uint64) {
	b.add(got)
	if got.Operations > published {
		b.wrong("the reader has %d packets, %d were published", got.Operations, published)
	} else if got.Wrong == "" {
		b.lost(published-got.Operations, "packets")
	}
}

// close gives the ring up.
func (s *soakedRing) close() error {
	if s.ring == nil {
		return nil
	}
	r := s.ring
	s.ring = nil
	return r.Close()
}

package stack

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// addLoose makes the tests without flow control, as one chunk at a time and as overlapped ones
// have buffers.
func (r *Report) addLoose(rig *stackRig) {
	for _, size := range rig.plan.Sizes {
		chunks := min(4096, max(4*r.Depth, r.Payload/size))
		for i, buffers := range []int{1, r.Depth} {
			mode := []string{Sync, Overlapped}[i]
			wrong, took := loose(chunks, size, buffers)
			r.Loose = append(r.Loose, Loose{stackGo, mode, size, chunks, wrong, cli.GBs(chunks*size, took)})
			if rig.native.missing != "" {
				continue
			}
			wrong, took, err := rig.native.loose(chunks, size, buffers)
			if err != nil {
				rig.native.fail(err)
				continue
			}
			r.Loose = append(r.Loose, Loose{stackC, mode, size, chunks, wrong, cli.GBs(chunks*size, took)})
		}
	}
}

// tableOfLoose writes what came of them.
func (r *Report) tableOfLoose(w io.Writer) {
	fmt.Fprintln(w, "\nWITHOUT FLOW CONTROL: in this benchmark alone, between two threads; the reader begins late, so data are wrong")
	t := texttable.Numbers("chunk", "path", "mode", "GB/s", "chunks", "wrong, by their checksums")
	for _, l := range r.Loose {
		t.Add(cli.SizeText(l.Size), l.Path, l.Mode, fmt.Sprintf("%.2f", l.GBs), fmt.Sprint(l.Chunks), fmt.Sprint(l.Wrong))
	}
	t.Write(w)
}

// looseBuffer is one of the buffers between two that do not wait for each other.
type looseBuffer struct {
	mu  sync.Mutex // a copy is whole; nothing says that it is the right one
	mem []byte
}

// loose moves chunks through buffers without flow control: the benchmark's alone, there is no
// such way to a device. The reader begins when the first buffer was used twice, as a target
// does that comes late. It returns how many chunks of those that were taken were not the ones
// that were sent, by their checksums.
func loose(chunks, size, buffers int) (wrong int, took time.Duration) {
	between := make([]looseBuffer, buffers)
	for i := range between {
		between[i].mem = make([]byte, size)
	}
	sums, chunk := make([]uint32, chunks), make([]byte, size)
	compare.FillPattern(chunk, 1)
	for n := range sums { // before, so that the writer only writes
		binary.LittleEndian.PutUint64(chunk, uint64(n))
		sums[n] = crc32.ChecksumIEEE(chunk)
	}
	late, done := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(done)
		for n := range chunks {
			binary.LittleEndian.PutUint64(chunk, uint64(n))
			between[n%buffers].put(chunk)
			if n == min(buffers, chunks-1) {
				close(late)
			}
		}
	}()
	<-late
	got := make([]byte, size)
	for n := range chunks {
		between[n%buffers].take(got)
		if crc32.ChecksumIEEE(got) != sums[n] {
			wrong++
		}
	}
	<-done
	return wrong, time.Since(start)
}

func (b *looseBuffer) put(chunk []byte) {
	b.mu.Lock()
	copy(b.mem, chunk)
	b.mu.Unlock()
}

func (b *looseBuffer) take(chunk []byte) {
	b.mu.Lock()
	copy(chunk, b.mem)
	b.mu.Unlock()
}

package stack

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// overrunSource is the device program without flow control.
//
//go:embed device
var overrunSource embed.FS

// overrun is a device without flow control: an engine that takes chunks into its buffers at once,
// and a reader that reads them at its own pace.
type overrun struct {
	image          []byte
	reader, engine *nfcomms.Instance
	missing        string // why it is not measured
}

// newOverrun builds the program and starts both processes, with a port for each of so many buffers.
func newOverrun(ctx context.Context, dev *nfcomms.Device, buffers int) *overrun {
	o := &overrun{}
	if err := o.start(ctx, dev, buffers); err != nil {
		o.missing = errors.Join(err, o.end()).Error()
	}
	return o
}

func (o *overrun) start(ctx context.Context, dev *nfcomms.Device, buffers int) (err error) {
	if o.image, err = program.Build(ctx, overrunSource, program.Options{}); err != nil {
		return err
	}
	if _, err = dev.Load(ctx, o.image); err != nil {
		return err
	}
	if o.reader, err = dev.Run(ctx, nfcomms.Program{Name: "overrun.reader"}); err != nil {
		return err
	}
	at, err := nfcomms.ChanOf[uint64](o.reader.Channels[0]).Receive(ctx)
	if err != nil {
		return err
	}
	o.engine, err = dev.Run(ctx, nfcomms.Program{Name: "overrun.engine", Targets: buffers, Argument: at})
	return err
}

// end stops the engine before the reader, whose memory it shares.
func (o *overrun) end() (err error) {
	for _, i := range []*nfcomms.Instance{o.engine, o.reader} {
		if i != nil {
			err = errors.Join(err, i.Close())
		}
	}
	return err
}

// errRoom means that the device has no memory for the buffers.
var errRoom = errors.New("the device has no memory for the buffers")

// overran is what a run without flow control came to: the chunks that came, those that the reader
// found to be others or torn, and how long the host sent.
type overran struct {
	came, wrong int
	took        time.Duration
}

// run sends chunks without flow control, of two memories in turn: one at a time through one buffer,
// or as many as there are buffers at once.
func (o *overrun) run(ctx context.Context, size, chunks, buffers int, memory [2][]byte) (result overran, err error) {
	ch := o.reader.Channels[0]
	if err := nfcomms.ChanOf[[3]uint64](ch).Send(ctx, [3]uint64{uint64(size), uint64(chunks), uint64(buffers)}); err != nil {
		return result, err
	}
	at, err := nfcomms.ChanOf[uint64](ch).Receive(ctx)
	if err == nil && at != 0 {
		result.took, err = o.send(ctx, size, chunks, buffers, memory)
	}
	if err != nil {
		return result, err
	}
	found, err := nfcomms.ChanOf[[2]uint64](ch).Receive(ctx)
	if err == nil && found[0] == 0 {
		err = errRoom
	}
	result.came, result.wrong = int(found[0]), int(found[1])
	return result, err
}

// send sends the chunks.
func (o *overrun) send(ctx context.Context, size, chunks, buffers int, memory [2][]byte) (time.Duration, error) {
	var sums [2][]uint32
	for v := range memory {
		compare.FillPattern(memory[v][:buffers*size], uint64(v))
		for i := range buffers {
			sums[v] = append(sums[v], checksum(memory[v][i*size+8:(i+1)*size]))
		}
	}
	start := time.Now()
	for first := 0; first < chunks; first += buffers {
		v := first / buffers % 2
		chunk := func(i int) []byte {
			mem := memory[v][i*size : (i+1)*size]
			binary.LittleEndian.PutUint64(mem, uint64(sums[v][i])<<32|uint64(first+i))
			return mem
		}
		var err error
		if buffers == 1 {
			err = o.engine.Channels[0].SendInd(ctx, chunk(0))
		} else {
			err = all(ctx, min(buffers, chunks-first), func(i int) *nfcomms.Future {
				return nfcomms.SendIndCase(o.engine.Channels[i], chunk(i)).Start(ctx)
			})
		}
		if err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// checksum is the one of overrun.c.
func checksum(mem []byte) uint32 {
	sum, prime := uint64(0xcbf29ce484222325), uint64(0x100000001b3)
	for ; len(mem) >= 8; mem = mem[8:] {
		sum = (sum ^ binary.LittleEndian.Uint64(mem)) * prime
	}
	for _, b := range mem {
		sum = (sum ^ uint64(b)) * prime
	}
	return uint32(sum ^ sum>>32)
}

// addLoose makes the tests without flow control, as one chunk at a time and as overlapped ones
// have buffers.
func (r *Report) addLoose(ctx context.Context, rig *stackRig) {
	o := rig.overrun
	for _, size := range rig.plan.Sizes {
		chunks := min(4096, max(4*r.Depth, r.Payload/size))
		for i, buffers := range []int{1, r.Depth} {
			mode := []string{Sync, Overlapped}[i]
			add := func(path string, o overran) {
				r.Loose = append(r.Loose, Loose{path, mode, size, chunks, o.came, o.wrong, cli.GBs(chunks*size, o.took)})
			}
			if o.missing == "" {
				result, err := o.run(ctx, size, chunks, buffers, [2][]byte{rig.sent, rig.got})
				switch {
				case err == nil:
					add(stackGo, result)
				case !errors.Is(err, errRoom):
					o.missing = err.Error()
				}
			}
			if o.missing == "" && rig.native.missing == "" {
				result, err := rig.native.loose(o.image, size, chunks, buffers)
				switch {
				case err == nil:
					add(stackC, result)
				case !errors.Is(err, errRoom):
					rig.native.fail(err)
				}
			}
		}
	}
}

// tableOfLoose writes what came of them.
func (r *Report) tableOfLoose(w io.Writer) {
	if len(r.Loose) == 0 {
		return
	}
	fmt.Fprintln(w, "\nWITHOUT FLOW CONTROL: a device program of this benchmark takes each chunk at once, and reads it when it can")
	t := texttable.Numbers("chunk", "path", "mode", "GB/s", "chunks", "came", "wrong, by their checksums")
	for _, l := range r.Loose {
		t.Add(cli.SizeText(l.Size), l.Path, l.Mode, fmt.Sprintf("%.2f", l.GBs), fmt.Sprint(l.Chunks), fmt.Sprint(l.Came), fmt.Sprint(l.Wrong))
	}
	t.Write(w)
}

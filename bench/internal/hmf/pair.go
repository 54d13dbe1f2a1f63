//go:build linux

package hmf

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

// The two processes of a pair are this binary again, under hidden commands.
// They read their task as JSON from standard input, and write their results as
// JSON to standard output.
const (
	generateCommand = "hmf-generate"
	receiveCommand  = "hmf-receive"
)

// hmfJob is what one pair moves, as both of its processes know it.
type hmfJob struct {
	Carry    string `json:"carry"` // what carries the packets: one of the constants
	Ring     string `json:"ring"`
	Dir      string `json:"dir"`      // for the sockets of a peer
	Warm     bool   `json:"warm"`     // both map all of the ring first
	Payload  int    `json:"payload"`  // net bytes of a packet
	Packages int    `json:"packages"` // measurements; the first is not recorded with the others
	Package  int    `json:"package"`  // packets of a measurement
	Full     bool   `json:"full"`     // compare every byte, not the packet's number alone
	Copy     bool   `json:"copy"`     // the receiver copies a packet before it looks
	Batch    int    `json:"batch"`    // packets handed over at once, 1: each
	Wait     string `json:"wait"`
	// Spoil has the generator write one wrong byte, which the receiver must
	// find: packet Spoil, none if it is negative.
	Spoil int `json:"spoil"`
	// Gate is the first of a gate's two files in the generator, 0: there is none.
	Gate int `json:"gate"`
}

// hmfSent is what the generator measured: nanoseconds per package, the time
// of measuring taken out.
type hmfSent struct {
	First float64 `json:"first_ns"` // of the first package, which touches memory
	// FirstPacket is that of the first packet, in which the two sides meet.
	FirstPacket float64   `json:"first_packet_ns"`
	Stat        stat.Stat `json:"stat_ns"`
	CPU         int64     `json:"cpu_ns"`
}

// hmfGot is what the receiver checked.
type hmfGot struct {
	Packets uint64 `json:"packets"`
	Wrong   uint64 `json:"wrong"`
	First   string `json:"first_wrong,omitempty"`
	CPU     int64  `json:"cpu_ns"`
}

// hmfPatterns is how many payloads there are; a prime, and none of the sizes of
// rings, so that no packet looks like the one a lap before.
const hmfPatterns = 13

// pattern returns the payloads that packets carry in turn, without their number.
func (j *hmfJob) pattern() [][]byte {
	all := make([][]byte, hmfPatterns)
	word := uint64(0x9e3779b97f4a7c15)
	for i := range all {
		all[i] = make([]byte, j.Payload)
		for at := 0; at+8 <= j.Payload; at += 8 {
			word ^= word << 13
			word ^= word >> 7
			word ^= word << 17
			binary.LittleEndian.PutUint64(all[i][at:], word)
		}
	}
	return all
}

// hmfWaits are the ways to wait by their names.
var hmfWaits = map[string]ring.Wait{
	"adaptive": ring.Adaptive, "spin": ring.Spin, "yield": ring.Yield, "park": ring.Park,
}

func newHMFGenerate() *cobra.Command {
	return hiddenChild(generateCommand, func(ctx context.Context, j *hmfJob) (any, error) {
		return hmfGenerate(ctx, j)
	})
}

func newHMFReceive() *cobra.Command {
	return hiddenChild(receiveCommand, func(ctx context.Context, j *hmfJob) (any, error) {
		return hmfReceive(ctx, j)
	})
}

// hiddenChild is a command that reads a job and prints what came of it.
func hiddenChild(name string, run func(context.Context, *hmfJob) (any, error)) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var j hmfJob
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&j); err != nil {
				return err
			}
			result, err := run(cmd.Context(), &j)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
		},
	}
}

// hmfGenerate fills packets in place and measures each package.
func hmfGenerate(ctx context.Context, j *hmfJob) (*hmfSent, error) {
	w, err := openWriter(ctx, j)
	if err != nil {
		return nil, err
	}
	sent, err := j.generate(ctx, w, time.Now)
	if err != nil {
		return nil, err
	}
	sent.CPU = int64(cli.CPUTime())
	return sent, w.Finish(ctx)
}

// generate measures packages by a clock. The time that the measuring itself takes is between two
// measurements.
func (j *hmfJob) generate(ctx context.Context, w compare.PacketWriter, now func() time.Time) (*hmfSent, error) {
	var sent hmfSent
	all, number, record := j.pattern(), 0, stat.NewRecorder()
	for p := range j.Packages {
		start := now()
		for range j.Package {
			to, err := w.Reserve()
			if err != nil {
				return nil, fmt.Errorf("packet %d: %w", number, err)
			}
			copy(to, all[number%hmfPatterns])
			binary.LittleEndian.PutUint64(to, uint64(number))
			if number == j.Spoil {
				to[j.Payload-1]++
			}
			if err := w.Commit(ctx, j.Payload); err != nil {
				return nil, err
			}
			if number++; number == 1 {
				sent.FirstPacket = float64(now().Sub(start))
			}
		}
		d := now().Sub(start)
		if p == 0 {
			sent.First = float64(d)
			j.pass()
		} else {
			record.Record(d)
		}
	}
	sent.Stat = record.Stat(1)
	return &sent, nil
}

// hmfReceive takes packets to the end of the stream and checks each.
func hmfReceive(ctx context.Context, j *hmfJob) (*hmfGot, error) {
	d, err := openReader(ctx, j)
	if err != nil {
		return nil, err
	}
	var got hmfGot
	all, local := j.pattern(), make([]byte, j.Payload)
	for {
		p, err := d.Next(ctx)
		if errors.Is(err, io.EOF) {
			got.CPU = int64(cli.CPUTime())
			return &got, d.Close()
		}
		if err != nil {
			return nil, err
		}
		if j.Copy {
			p = local[:copy(local, p)]
		}
		if says := j.wrong(p, got.Packets, all[got.Packets%hmfPatterns]); says != "" {
			got.Wrong++
			if got.First == "" {
				got.First = says
			}
		}
		got.Packets++
		d.Release()
	}
}

// wrong returns what is not as it was sent in packet n, if anything is.
func (j *hmfJob) wrong(p []byte, n uint64, want []byte) string {
	if len(p) != j.Payload {
		return fmt.Sprintf("packet %d has %d bytes in place of %d", n, len(p), j.Payload)
	}
	if number := binary.LittleEndian.Uint64(p); number != n {
		return fmt.Sprintf("packet %d says it is %d", n, number)
	}
	if j.Full && !bytes.Equal(p[8:], want[8:]) {
		return fmt.Sprintf("packet %d differs", n)
	}
	return ""
}

// hmfRun is what a pair made of its job.
type hmfRun struct {
	sent hmfSent
	got  hmfGot
	wall time.Duration
}

// hmfGate holds the generators of several pairs after their first package until all
// have come so far: what is measured is measured beside the others.
type hmfGate struct {
	ready, arrive *os.File // a pipe: each generator closes arrive
	wait, open    *os.File // a pipe: the starter closes open
	started       sync.WaitGroup
}

func newHMFGate(pairs int) (*hmfGate, error) {
	var g hmfGate
	var err error
	if g.ready, g.arrive, err = os.Pipe(); err != nil {
		return nil, err
	}
	if g.wait, g.open, err = os.Pipe(); err != nil {
		_, _ = g.ready.Close(), g.arrive.Close() // nothing was written
		return nil, err
	}
	g.started.Add(pairs)
	return &g, nil
}

// lift opens the gate once all generators have arrived, or ended.
func (g *hmfGate) lift() {
	g.started.Wait()
	_, _ = g.arrive.Close(), g.wait.Close() // each child has its own
	_, _ = io.Copy(io.Discard, g.ready)     // nothing comes but the end
	_, _ = g.ready.Close(), g.open.Close()
}

// pass waits at the gate, if there is one.
func (j *hmfJob) pass() {
	if j.Gate == 0 {
		return
	}
	_ = os.NewFile(uintptr(j.Gate), "arrive").Close()
	wait := os.NewFile(uintptr(j.Gate+1), "wait")
	_, _ = io.Copy(io.Discard, wait) // nothing comes but the end
	_ = wait.Close()
}

// runPair starts a receiver and a generator on a ring and waits for both. At a
// gate, if one is given, the generator waits for those of other pairs.
func runPair(ctx context.Context, j hmfJob, g *hmfGate) (run hmfRun, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the other one ends with the first that fails
	from, to, closeEnds, err := j.ends()
	if err != nil {
		g.begun()
		return run, err
	}
	defer closeEnds()
	generator := j
	if g != nil {
		generator.Gate = compare.FirstInherited + len(to)
		to = append(to, g.arrive, g.wait)
	}
	start := time.Now()
	ended := make(chan error, 2) // one per process
	started := make(chan struct{}, 2)
	go func() { ended <- childJSON(ctx, receiveCommand, j, &run.got, started, from...) }()
	go func() { ended <- childJSON(ctx, generateCommand, generator, &run.sent, started, to...) }()
	for range 2 {
		<-started
	}
	g.begun()
	closeEnds() // each child has its own: the end of one is seen by the other
	for range 2 {
		if e := <-ended; e != nil {
			cancel()
			if err == nil || strings.Contains(err.Error(), ring.ErrPeerDied.Error()) {
				err = e // rather what one did than that the other saw it go
			}
		}
	}
	run.wall = time.Since(start)
	if err == nil && run.got.Wrong > 0 {
		err = fmt.Errorf("%d of %d packets are wrong: %s", run.got.Wrong, run.got.Packets, run.got.First)
	}
	return run, err
}

// begun takes note that the processes of a pair have their files.
func (g *hmfGate) begun() {
	if g != nil {
		g.started.Done()
	}
}

// ends opens what a pipe or a socket of a peer consists of: the receiver's and the
// generator's end.
func (j *hmfJob) ends() (from, to []*os.File, closeBoth func(), err error) {
	var r, w *os.File
	switch j.Carry {
	case carryPipe:
		r, w, err = os.Pipe()
	case carryUnix:
		r, w, err = compare.SocketPair()
	default:
		return nil, nil, func() {}, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return []*os.File{r}, []*os.File{w}, func() {
		_, _ = r.Close(), w.Close() // the second time there is nothing to do
	}, nil
}

// childJSON runs this binary under a hidden command, with the given files from
// descriptor 3 on, and writes to started when it has, or cannot.
func childJSON(ctx context.Context, command string, in, out any, started chan<- struct{}, files ...*os.File) error {
	var once sync.Once
	begun := func() { once.Do(func() { started <- struct{}{} }) }
	defer begun()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	job, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	cmd := subprocess.Command(ctx, self, command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = bytes.NewReader(job), &stdout, &stderr, files
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	begun()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return json.Unmarshal(stdout.Bytes(), out)
}

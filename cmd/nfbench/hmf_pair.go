//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// The two processes of a pair are this binary again, under hidden commands.
// What they are to do comes as JSON on standard input, what they saw leaves as
// JSON on standard output.
const (
	generateCommand = "hmf-generate"
	receiveCommand  = "hmf-receive"
)

// hmfJob is what one pair moves, as both of its processes know it.
type hmfJob struct {
	Ring     string `json:"ring"`
	Payload  int    `json:"payload"`  // net bytes of a packet
	Packages int    `json:"packages"` // measurements; the first is not recorded with the others
	Package  int    `json:"package"`  // packets of a measurement
	Full     bool   `json:"full"`     // compare every byte, not the packet's number alone
	Copy     bool   `json:"copy"`     // the receiver copies a packet before it looks
	Wait     string `json:"wait"`
	// Spoil has the generator write one wrong byte, which the receiver must
	// find: packet Spoil, none if it is negative.
	Spoil int `json:"spoil"`
}

// hmfSent is what the generator measured: nanoseconds per package, the time
// of measuring taken out.
type hmfSent struct {
	First float64 `json:"first_ns"` // of the first package, which touches memory
	Stat  Stat    `json:"stat_ns"`
	CPU   int64   `json:"cpu_ns"`
}

// hmfGot is what the receiver checked.
type hmfGot struct {
	Packets uint64 `json:"packets"`
	Wrong   uint64 `json:"wrong"`
	First   string `json:"first_wrong,omitempty"`
	CPU     int64  `json:"cpu_ns"`
}

// hmfPatterns is how many payloads there are; a prime, and none of the sizes of
// rings, so that no packet looks like the one a lap before (H17).
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

// hmfGenerate fills packets in place and measures each package. The time that
// the measuring itself takes is between two measurements (H23).
func hmfGenerate(ctx context.Context, j *hmfJob) (*hmfSent, error) {
	r, err := ring.Open(ctx, j.Ring, ring.Options{Wait: hmfWaits[j.Wait]})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w, err := r.Writer(ctx)
	if err != nil {
		return nil, err
	}
	var sent hmfSent
	all, number, record := j.pattern(), 0, newRecorder()
	for p := range j.Packages {
		start := time.Now()
		for range j.Package {
			to := w.Reserve()
			if to == nil {
				return nil, fmt.Errorf("packet %d: the ring is of no use any more", number)
			}
			copy(to, all[number%hmfPatterns])
			binary.LittleEndian.PutUint64(to, uint64(number))
			if number == j.Spoil {
				to[j.Payload-1]++
			}
			if err := w.Commit(ctx, j.Payload); err != nil {
				return nil, err
			}
			number++
		}
		d := time.Since(start)
		if p == 0 {
			sent.First = float64(d)
		} else {
			record.record(d)
		}
	}
	if err := w.Flush(ctx); err != nil {
		return nil, err
	}
	sent.Stat, sent.CPU = record.stat(1), int64(cpuTime())
	return &sent, w.Close()
}

// hmfReceive takes packets to the end of the stream and checks each.
func hmfReceive(ctx context.Context, j *hmfJob) (*hmfGot, error) {
	r, err := ring.Open(ctx, j.Ring, ring.Options{Wait: hmfWaits[j.Wait]})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	d, err := r.Reader(ctx)
	if err != nil {
		return nil, err
	}
	var got hmfGot
	all, local := j.pattern(), make([]byte, j.Payload)
	for {
		p, err := d.Peek(ctx)
		if errors.Is(err, io.EOF) {
			got.CPU = int64(cpuTime())
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

// wrong says what is not as it was sent in packet n, if anything is.
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

// runPair starts a receiver and a generator on a ring and waits for both.
func runPair(ctx context.Context, j hmfJob) (run hmfRun, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the other one ends with the first that fails
	start := time.Now()
	ended := make(chan error, 2) // one per process
	go func() { ended <- childJSON(ctx, receiveCommand, j, &run.got) }()
	go func() { ended <- childJSON(ctx, generateCommand, j, &run.sent) }()
	for range 2 {
		if e := <-ended; e != nil {
			cancel()
			if err == nil {
				err = e
			}
		}
	}
	run.wall = time.Since(start)
	return run, err
}

// childJSON runs this binary under a hidden command.
func childJSON(ctx context.Context, command string, in, out any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	job, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return json.Unmarshal(stdout.Bytes(), out)
}

//go:build linux

package groups

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/pkg/group"
)

// A member process is this binary again, under a hidden command. A line on its
// standard input has how many steps to do, a line on its output what they took:
// nanoseconds, processor time so far, and what auto chose.
const (
	memberCommand = "group-member"
	memberLine    = "%d %d %q\n"
	delayFormat   = "%d,%d,%t"
)

func newGroupMember() *cobra.Command {
	return &cobra.Command{
		Use: memberCommand + " NAME ALGORITHM RANK MEMBERS TARGETS SIZE DELAY", Hidden: true, Args: cobra.ExactArgs(7),
		RunE: func(cmd *cobra.Command, args []string) error {
			var n [4]int
			for i := range n {
				var err error
				if n[i], err = strconv.Atoi(args[2+i]); err != nil {
					return err
				}
			}
			s := exchangeShape{TransportShm, n[1], n[2], n[3]}
			o := group.Options{Algorithm: args[1]}
			if _, err := fmt.Sscanf(args[6], delayFormat, &o.Delay.PerByte, &o.Delay.PerMember, &o.Delay.Random); err != nil {
				return err
			}
			return memberProcess(cmd.Context(), s, args[0], o, n[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func memberProcess(ctx context.Context, s exchangeShape, name string, o group.Options, rank int, in io.Reader, out io.Writer) error {
	g, err := group.Join(ctx, group.Rings{Name: name}, s.options(o, rank))
	if err != nil {
		return err
	}
	defer g.Close()
	packages := s.packages(rank)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		took, err := compare.Timed(func() error {
			for range n {
				if _, err := g.Exchange(ctx, packages); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, memberLine, took, cli.CPUTime(), chose(o.Algorithm, g))
	}
	return nil
}

// processes are the members of one group.
type processes struct {
	commands []*exec.Cmd
	in       []io.WriteCloser
	out      []*bufio.Reader
	cpu      []time.Duration // of each, so far
	chose    string
}

var groupNames atomic.Int64

func newProcessSide(ctx context.Context, s exchangeShape, o group.Options) (*compare.Contender, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &processes{cpu: make([]time.Duration, s.members)}
	name := fmt.Sprintf("nfbench-%d-%d", os.Getpid(), groupNames.Add(1))
	for rank := range s.members {
		cmd := subprocess.Command(ctx, self, memberCommand, name, o.Algorithm, strconv.Itoa(rank),
			strconv.Itoa(s.members), strconv.Itoa(s.targets), strconv.Itoa(s.size),
			fmt.Sprintf(delayFormat, o.Delay.PerByte, o.Delay.PerMember, o.Delay.Random))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.commands, p.in, p.out = append(p.commands, cmd), append(p.in, in), append(p.out, bufio.NewReader(out))
	}
	return &compare.Contender{Name: o.Algorithm, Size: s.size, Batch: s.batch(), Run: p.run, CPU: p.cpuTime, Used: p.used, Close: p.close, Chose: func() string { return p.chose }}, nil
}

// run has all processes do n steps, and returns the time of the slowest.
func (p *processes) run(_ context.Context, n int) (time.Duration, error) {
	for _, in := range p.in {
		if _, err := fmt.Fprintln(in, n); err != nil {
			return 0, err
		}
	}
	var most time.Duration
	for rank, out := range p.out {
		var took time.Duration
		if _, err := fmt.Fscanf(out, memberLine, &took, &p.cpu[rank], &p.chose); err != nil {
			return 0, fmt.Errorf("member process of rank %d: %w", rank, err)
		}
		most = max(most, took)
	}
	return most, nil
}

// used is the processor time of all, so far.
func (p *processes) used() (all time.Duration) {
	for _, d := range p.cpu {
		all += d
	}
	return all
}

func (p *processes) cpuTime() (time.Duration, error) { return p.used(), nil }

func (p *processes) close() error {
	var errs []error
	for _, in := range p.in {
		errs = append(errs, in.Close())
	}
	for _, cmd := range p.commands {
		errs = append(errs, cmd.Wait())
	}
	return errors.Join(errs...)
}

// mpiNames are the peers, as they stand in reports: OpenMPI and its call.
var mpiNames = [2]string{"OpenMPI alltoallv", "OpenMPI neighbor_alltoallv"}

// groupNoPeers is what is not compared with.
const groupNoPeers = "UCX, iceoryx2: " + cli.ResultNotMeasured + "they have messages, but no step of many members"

// newGroupMPI builds the step of OpenMPI.
func newGroupMPI(ctx context.Context) *compare.NativeProgram {
	p := &compare.NativeProgram{Library: compare.NativeOpenMPI, Limit: compare.NativeLimit}
	return p.Build(ctx, "-O2", []embed.FS{compare.NativeSources}, "native/group.c")
}

// groupSide is a contender that exchanges by a call of OpenMPI.
func groupSide(p *compare.NativeProgram, s exchangeShape, name string) *compare.Contender {
	_, call, _ := strings.Cut(name, " ")
	return p.Repeated(name, "step", s.size, s.batch(), func(ctx context.Context, batches int) (*compare.NativeRun, error) {
		return p.Run(ctx, s.members, call, s.size, s.targets, batches, s.batch(), compare.NativeMillis)
	})
}

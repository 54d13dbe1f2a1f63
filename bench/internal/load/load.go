package load

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// A busy process is this binary again, under a hidden command, which computes
// until its standard input ends.
const loadCommand = "busy"

func newLoad() *cobra.Command {
	return &cobra.Command{
		Use:    loadCommand,
		Short:  "Compute until the standard input ends",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ended atomic.Bool
			defer ended.Store(true)
			go func() {
				for !ended.Load() {
				}
			}()
			_, err := io.Copy(io.Discard, cmd.InOrStdin())
			return err
		},
	}
}

// Process ends with its standard input.
type Process struct {
	Cmd   *exec.Cmd
	Stdin io.Closer
}

// Processes are those of a run.
type Processes []Process

// Start starts n of them.
func Start(ctx context.Context, n int) (all Processes, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range n {
		cmd := subprocess.Command(ctx, self, loadCommand)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, errors.Join(err, all.Stop())
		}
		all = append(all, Process{cmd, stdin})
	}
	return all, nil
}

// Stop ends them.
func (l Processes) Stop() error {
	var errs []error
	for _, p := range l {
		errs = append(errs, p.Stdin.Close(), p.Cmd.Wait())
	}
	return errors.Join(errs...)
}

// Add adds the command of a busy process, which is hidden.
func Add(root *cobra.Command, _ *cli.Flags) { root.AddCommand(newLoad()) }

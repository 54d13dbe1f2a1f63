package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/spf13/cobra"

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

// load is a process that ends with its standard input, loads are those of a run.
type (
	load struct {
		cmd   *exec.Cmd
		stdin io.Closer
	}
	loads []load
)

// startLoad starts n of them.
func startLoad(ctx context.Context, n int) (all loads, err error) {
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
			return nil, errors.Join(err, all.stop())
		}
		all = append(all, load{cmd, stdin})
	}
	return all, nil
}

// stop ends them.
func (l loads) stop() error {
	var errs []error
	for _, p := range l {
		errs = append(errs, p.stdin.Close(), p.cmd.Wait())
	}
	return errors.Join(errs...)
}

// addLoad adds the command of a busy process, which is hidden.
func addLoad(root *cobra.Command, _ *common) { root.AddCommand(newLoad()) }

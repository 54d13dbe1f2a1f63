package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// usageError is a fault of the command line: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, commands ...adder) int {
	root := newRoot(commands...)
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "ask the system"
	root.SetOut(stdout)
	root.SetErr(stderr)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "nfbench: interrupted, nothing reported")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "nfbench: %v\n", err)
	var usage usageError
	badAddress := errors.Is(err, nfcomms.ErrScheme) || errors.Is(err, nfcomms.ErrOption)
	if !started || badAddress || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// newRoot is the command line with some commands.
func newRoot(commands ...adder) *cobra.Command {
	root := &cobra.Command{
		Use:   "nfbench",
		Short: "Measure NFComms: latency, throughput, and beside its peers",
		Long: `Measure NFComms as an application sees it.

Exit codes: 0 measured, 1 the measurement failed, 2 bad input, 130 interrupted.
Goals that are not met do not change the exit code.`,
		Example: `  nfbench latency
  nfbench throughput --targets 1,8 --plot throughput.svg
  nfbench peers --output json`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	c := &common{}
	root.PersistentFlags().StringVar(&c.address, "address", "sim:", "device address")
	root.PersistentFlags().StringVar(&c.output, "output", "table", "output format: table or json")
	formats := cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp)
	// The flag is there: it was defined two lines above.
	_ = root.RegisterFlagCompletionFunc("output", formats)
	for _, add := range commands {
		add(root, c)
	}
	return root
}

// adder adds the commands of a subject, whose flags are those of c as well.
type adder func(root *cobra.Command, c *common)

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

// UsageError is a fault of the command line: exit code 2.
type UsageError struct{ Err error }

// Error returns the reason.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// Main runs the command line of this process, which Ctrl-C or a termination ends, and exits.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, root, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run executes one command line and returns its exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "ask the system"
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceUsage, root.SilenceErrors = true, true
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if ctx.Err() != nil {
		fmt.Fprintf(stderr, "%s: interrupted, nothing reported\n", root.Name())
		return ExitInterrupted
	}
	fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
	var usage UsageError
	badAddress := errors.Is(err, nfcomms.ErrScheme) || errors.Is(err, nfcomms.ErrOption)
	if !started || badAddress || errors.As(err, &usage) {
		return ExitUsage
	}
	return ExitFailed
}

// Root is the command line of nfbench with some commands.
func Root(commands ...Adder) *cobra.Command {
	root := &cobra.Command{
		Use:   "nfbench",
		Short: "Measure NFComms: latency, throughput, and beside its peers",
		Long: `Measure NFComms as an application sees it.

Exit codes: 0 measured, 1 the measurement failed, 2 bad input, 130 interrupted.
Goals that are not met do not change the exit code.`,
		Example: `  nfbench latency
  nfbench throughput --targets 1,8 --plot throughput.svg
  nfbench peers --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	c := NewFlags(root)
	for _, add := range commands {
		add(root, c)
	}
	return root
}

// Adder adds the commands of a subject, whose flags are those of c as well.
type Adder func(root *cobra.Command, c *Flags)

// NewFlags gives a command, and those below it, the flags that every command has.
func NewFlags(root *cobra.Command) *Flags {
	c := &Flags{}
	root.PersistentFlags().StringVar(&c.Address, "address", "sim:", "device address")
	root.PersistentFlags().StringVar(&c.output, "output", "table", "output format: table or json")
	formats := cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp)
	// The flag is there: it was defined above.
	_ = root.RegisterFlagCompletionFunc("output", formats)
	return c
}

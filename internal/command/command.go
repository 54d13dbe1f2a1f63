package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitInput       = 2
	ExitInterrupted = 130
)

// InputError is a fault of the command line or of the files it names.
type InputError struct{ Err error }

// Error returns the reason.
func (e InputError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e InputError) Unwrap() error { return e.Err }

// Inputf makes an InputError.
func Inputf(format string, args ...any) error { return InputError{fmt.Errorf(format, args...)} }

// Func is a command: it works until it is done or ctx ends.
type Func func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs the command of this process, which Ctrl-C or a termination ends, and exits.
func Main(name string, run Func) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, name, run, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run executes one command line and returns its exit code. An error is one line on stderr.
func Run(ctx context.Context, name string, run Func, args []string, stdout, stderr io.Writer) int {
	err := run(ctx, args, stdout, stderr)
	var input InputError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitOK
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "%s: interrupted\n", name)
		return ExitInterrupted
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if errors.As(err, &input) || errors.Is(err, nfcomms.ErrScheme) || errors.Is(err, nfcomms.ErrOption) {
		return ExitInput
	}
	return ExitFailed
}

// Flags makes a set of flags for Parse.
func Flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // one line for an error, written by Run
	return f
}

// Parse reads a command line. With --help it writes how to use the command, and the
// error is flag.ErrHelp.
func Parse(f *flag.FlagSet, args []string, stderr io.Writer, usage string) error {
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, "usage: "+usage)
		f.SetOutput(stderr)
		f.PrintDefaults()
		return err
	}
	if err != nil {
		return InputError{err}
	}
	return nil
}

// NoArguments is the error of a command line that has more than flags, or nil.
func NoArguments(f *flag.FlagSet) error {
	if f.NArg() > 0 {
		return Inputf("%q is no flag", f.Arg(0))
	}
	return nil
}

// Bar shows progress on a terminal and nothing anywhere else. The zero Bar shows none.
type Bar struct{ b *progressbar.ProgressBar }

// NewBar begins a bar. bytes says that total is a number of bytes.
func NewBar(w io.Writer, total int64, description string, bytes bool) Bar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Bar{}
	}
	return Bar{progressbar.NewOptions64(total, progressbar.OptionSetWriter(f), progressbar.OptionShowBytes(bytes),
		progressbar.OptionSetDescription(description), progressbar.OptionClearOnFinish())}
}

// Add moves the bar on. A bar that cannot be drawn is no reason to stop.
func (b Bar) Add(n int) {
	if b.b != nil {
		_ = b.b.Add(n)
	}
}

// End takes the bar away.
func (b Bar) End() {
	if b.b != nil {
		_ = b.b.Finish()
	}
}

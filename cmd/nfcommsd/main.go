package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/cmd/internal/manual"
	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitConfig = 2
)

// runError is an error of a valid configuration.
type runError struct {
	error
	logged bool // in the log already, in its form
}

func main() {
	signals := make(chan os.Signal, 4) // one of each kind that matters, and a second SIGTERM
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE) // a closed reader of the log is no reason to end
	os.Exit(run(os.Args[1:], os.Environ(), signals, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(args, environ []string, signals <-chan os.Signal, stdout, stderr io.Writer) int {
	root := newRoot(environ, signals)
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "ask the system"
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitOK
	}
	failed := runError{}
	ran := errors.As(err, &failed)
	if !failed.logged {
		fmt.Fprintf(stderr, "nfcommsd: %v\n", err)
	}
	if ran {
		return exitFailed
	}
	return exitConfig
}

func newRoot(environ []string, signals <-chan os.Signal) *cobra.Command {
	version, commit := control.Build()
	root := &cobra.Command{
		Use:               "nfcommsd [flags]",
		Short:             "Open devices and serve their control plane",
		Long:              "Open devices and serve their control plane. Every flag is also an environment variable and a key of the file:\n--limits-streams, NFCOMMSD_LIMITS_STREAMS, and streams: below limits:. The flag wins, then the environment.",
		Args:              cobra.NoArgs,
		Version:           fmt.Sprintf("%s %s", version, commit),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.Flags().SortFlags = false
	flags := config.AddFlags(root.Flags())
	check := root.Flags().Bool("check", false, "say whether the configuration is good, and exit")
	show := root.Flags().Bool("print-config", false, "print the configuration that would be used, and exit")
	page := root.Flags().Bool("manual", false, "print the manual page, and exit")
	_ = root.Flags().MarkHidden("manual") // for packagers; it fails for a flag that is not there
	root.MarkFlagsMutuallyExclusive("check", "print-config", "manual")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *page {
			return printManual(cmd)
		}
		load := func() (*config.Loaded, error) { return loadValid(flags, environ) }
		conf, err := load()
		switch {
		case err != nil:
			return err
		case *check:
			return sayGood(conf, cmd.OutOrStdout(), cmd.ErrOrStderr())
		case *show:
			return printConfig(cmd.OutOrStdout(), conf)
		}
		if err := serve(conf, load, signals, cmd.ErrOrStderr()); err != nil {
			return runError{err, logEnd(conf.Log, cmd.ErrOrStderr(), err)}
		}
		return nil
	}
	return root
}

// logEnd logs why the daemon ends, if its log is for machines.
func logEnd(c config.Log, w io.Writer, err error) bool {
	if c.Format == "text" {
		return false
	}
	log, _ := newLogger(c, w)
	log.Error("nfcommsd ends", "error", err)
	return true
}

// sayGood answers --check, with a warning for each likely mistake and each name that nobody has.
func sayGood(conf *config.Loaded, stdout, stderr io.Writer) error {
	for _, w := range warnings(conf) {
		fmt.Fprintf(stderr, "nfcommsd: warning: %v\n", w)
	}
	_, unknown, err := conf.Policy()
	for _, w := range unknown {
		fmt.Fprintf(stderr, "nfcommsd: warning: %v: holds no role until it is known\n", w)
	}
	if err == nil {
		_, err = fmt.Fprintln(stdout, "the configuration is good")
	}
	return err
}

func printManual(cmd *cobra.Command) error {
	date, err := manual.Date(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	cmd.DisableAutoGenTag = true
	text, err := manual.Page(cmd, "8", date)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

func printConfig(w io.Writer, conf *config.Loaded) error {
	text, err := conf.YAML()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Run executes one command line and returns its exit code: ExitUsage for an error from before started was
// set.
func Run(ctx context.Context, root *cobra.Command, started *bool, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "ask the system"
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
	if *started {
		return ExitFailed
	}
	return ExitUsage
}

// FromEnvironment sets the flags that the command line does not have, by variables whose names begin with
// prefix.
func FromEnvironment(prefix string, f *pflag.FlagSet, getenv func(string) string) (err error) {
	f.VisitAll(func(flag *pflag.Flag) {
		name := prefix + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if value := getenv(name); value != "" && !flag.Changed && err == nil {
			if bad := f.Set(flag.Name, value); bad != nil {
				err = fmt.Errorf("%s: %w", name, bad)
			}
		}
	})
	return err
}

// WithProbes runs work beside a server of probes at a TCP address. The context of work ends with the
// server, whose error is returned then: without probes the node would not notice that work has ended.
func WithProbes(ctx context.Context, log *slog.Logger, address string, probes http.Handler, work func(context.Context) error) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Info("probes", "address", l.Addr().String())
	server := &http.Server{Handler: probes, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 4096}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			cancel(err)
		}
	}()
	err = work(ctx)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	_ = server.Close()
	<-done
	return err
}

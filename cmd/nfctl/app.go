package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// app is what all commands share: the global flags and the streams.
type app struct {
	streams
	// buffered wraps streams.out; every command writes here.
	buffered *bufio.Writer
	getenv   func(string) string
	// opened is the device of --device.
	opened *nfcomms.Device
	// started: the flags were in order, and a command runs.
	started bool

	server
	// given has the flags that the command line sets; others may be of the environment.
	given   map[string]bool
	config  string
	context string
	device  string
	output  string
	jq      string
	filter  *gojq.Code // of jq; nil for none
	noColor bool
	timeout time.Duration
}

// flagEnv names the environment variables that stand in for flags.
var flagEnv = map[string]string{
	"address":         "NFCTL_ADDRESS",
	"config":          "NFCTL_CONFIG",
	"context":         "NFCTL_CONTEXT",
	"device":          "NFCTL_DEVICE",
	"output":          "NFCTL_OUTPUT",
	"timeout":         "NFCTL_TIMEOUT",
	"server-user":     "NFCTL_SERVER_USER",
	"tls-ca":          "NFCTL_TLS_CA",
	"tls-cert":        "NFCTL_TLS_CERT",
	"tls-key":         "NFCTL_TLS_KEY",
	"tls-server-name": "NFCTL_TLS_SERVER_NAME",
}

// placeFlags name where the devices are; one of them excludes the others.
var placeFlags = []string{"address", "context", "device"}

// formats are the values of --output.
var formats = []string{"table", "wide", "json", "yaml"}

// flags defines the global flags.
func (a *app) flags(f *pflag.FlagSet) {
	f.StringVar(&a.address, "address", control.DefaultAddress, "server: unix:///path, or host:port with the --tls flags; if you run a daemon of your own, its socket in XDG_RUNTIME_DIR")
	f.StringVar(&a.serverUser, "server-user", serviceUser, "user who may serve at a UNIX socket beside root and you; '*' for any")
	f.StringVar(&a.context, "context", "", "server of this name in the file of contexts: nfctl contexts list")
	f.StringVar(&a.config, "config", "", "file of contexts; $XDG_CONFIG_HOME/nfctl/config.yaml, else that in ~/.config")
	f.StringVar(&a.device, "device", "", "open this device address here, without a server; its name is \""+localName+"\"")
	f.StringVarP(&a.output, "output", "o", "table", "output format: "+strings.Join(formats, ", "))
	f.StringVar(&a.jq, "jq", "", "an expression of jq: print what it makes of the JSON, a value a line, texts without quotes")
	f.DurationVar(&a.timeout, "timeout", 10*time.Second, "how long a command may take; 0 means for ever")
	f.BoolVar(&a.noColor, "no-color", false, "no colours, as with NO_COLOR in the environment")
	a.tls.flags(f)
}

// start fills in flags from the environment and checks them. A flag beats the
// environment.
func (a *app) start(cmd *cobra.Command) error {
	flags := cmd.Root().PersistentFlags()
	a.given = make(map[string]bool)
	flags.VisitAll(func(f *pflag.Flag) { a.given[f.Name] = f.Changed })
	// A flag that names a place wins over the variables of the other ones, and --all over all.
	placed := slices.ContainsFunc(placeFlags, flags.Changed)
	if all := cmd.Flags().Lookup("all"); all != nil && all.Value.String() == "true" {
		if placed {
			return usagef("--all asks the servers of all contexts: it excludes --address, --context and --device")
		}
		placed = true
	}
	for name, env := range flagEnv {
		f := flags.Lookup(name)
		value := a.getenv(env)
		if f.Changed || value == "" || placed && slices.Contains(placeFlags, name) {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return usagef("%s=%q: %w", env, value, err)
		}
		f.Changed = true
	}
	switch {
	case !slices.Contains(formats, a.output):
		return usagef("output format %q is not one of %s", a.output, strings.Join(formats, ", "))
	case a.timeout < 0:
		return usagef("--timeout %v is negative", a.timeout)
	case len(slices.DeleteFunc(slices.Clone(placeFlags), func(name string) bool { return !flags.Changed(name) })) > 1:
		return usagef("an address, a context and a device exclude each other: each names where the devices are")
	}
	if !flags.Changed("address") {
		a.address = control.Address()
	}
	if err := a.startFilter(); err != nil {
		return err
	}
	return a.tls.check()
}

// startFilter reads the expression of --jq, which needs JSON.
func (a *app) startFilter() (err error) {
	if a.jq == "" {
		return nil
	}
	if a.output != "table" && a.output != "json" {
		return usagef("--jq needs -o json")
	}
	a.output = "json"
	a.filter, err = compileFilter(a.jq)
	return err
}

// limited returns the context of a command that --timeout bounds.
func (a *app) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, a.timeout)
}

// color reports whether the output may have colours.
func (a *app) color() bool {
	return !a.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && isTerminal(a.out)
}

// isTerminal reports whether a stream is one.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// action is what a command does with a server.
type action func(ctx context.Context, c *control.Client, args []string) error

// bounded makes a cobra function of an action that --timeout bounds.
func (a *app) bounded(do action) func(*cobra.Command, []string) error {
	return a.connected(func(ctx context.Context, c *control.Client, args []string) error {
		ctx, cancel := a.limited(ctx)
		defer cancel()
		return do(ctx, c, args)
	})
}

// connected makes a cobra function of an action that bounds its calls itself.
func (a *app) connected(do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		c, done, err := a.dial(ctx)
		if err != nil {
			return err
		}
		err = a.explain(ctx, suggestDevice(ctx, c, args, do(ctx, c, args)))
		return errors.Join(err, done())
	}
}

// either makes a cobra function that asks all servers if a flag is set, and one otherwise.
func (a *app) either(all *bool, many func(context.Context) error, one func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case !*all:
			return one(cmd, args)
		case len(args) > 0:
			return usagef("--all shows all devices: it takes no names")
		}
		return many(cmd.Context())
	}
}

// dial returns a client of the server, or of a server of our own for --device,
// and what ends it.
func (a *app) dial(ctx context.Context) (*control.Client, func() error, error) {
	if a.device != "" {
		ctx, cancel := a.limited(ctx)
		defer cancel()
		return a.dialDevice(ctx)
	}
	if err := a.place(); err != nil {
		return nil, nil, err
	}
	c, err := a.server.dial()
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}

// explain turns the error of a connection that was not made into one that
// reports where and why.
func (a *app) explain(ctx context.Context, err error) error {
	if a.device != "" {
		return err
	}
	if status.Code(err) == codes.PermissionDenied {
		return fmt.Errorf("%w (an administrator of the server grants roles below \"roles:\" of its configuration)", err)
	}
	return a.server.explain(ctx, err)
}

// note prints something that is not data.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.err, "nfctl: %s\n", escape(fmt.Sprintf(format, args...)))
}

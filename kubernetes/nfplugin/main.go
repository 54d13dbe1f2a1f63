// Command nfplugin is the device plugin of a node: it offers the devices of nfcommsd to Kubernetes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nfcomms/nfcomms/kubernetes/internal/command"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/metrics"
)

// settings are those of the command line.
type settings struct {
	address, folder, cdi, http, level string
	pods                              string
	sockets, shares                   []string
	reset                             bool
	grace                             time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	started := false
	return command.Run(ctx, newRoot(getenv, stderr, &started), &started, args, stdout, stderr)
}

func newRoot(getenv func(string) string, stderr io.Writer, started *bool) *cobra.Command {
	var s settings
	version, commit := control.Build()
	root := &cobra.Command{
		Use:   "nfplugin",
		Short: "Offer the devices of nfcommsd to Kubernetes",
		Long: `Offer the devices of nfcommsd to the kubelet of this node, as its device plugin:

  ` + plugin.ResourceDevice + `  a device as a whole, for one container
  ` + plugin.ResourceShare + `   one client of a device that several use

A container opens its device as "env:". Each flag has a variable, as NFPLUGIN_CDI_DIR
for --cdi-dir; the flag wins.`,
		Args:    cobra.NoArgs,
		Version: strings.TrimSpace(version + " " + commit), SilenceUsage: true, SilenceErrors: true,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags(), getenv) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := s.options(stderr)
			if err != nil {
				return err
			}
			*started = true
			defer func() { _ = o.Client.Close() }() // all calls have ended
			return s.serve(cmd.Context(), o)
		},
	}
	f := root.Flags()
	f.StringVar(&s.address, "address", control.DefaultAddress, "the daemon's UNIX socket")
	f.StringVar(&s.folder, "kubelet-dir", "", "folder of the kubelet's plugins (default /var/lib/kubelet/device-plugins)")
	f.StringSliceVar(&s.sockets, "sockets", []string{"/run/nfsim"}, "folders below which sockets of shared devices may lie; no other file of the host is given to a container")
	f.StringSliceVar(&s.shares, "shares", nil, "clients that a device has room for, as N (8) for each shared one, or NAME=N; 0 gives it as a whole")
	f.StringVar(&s.cdi, "cdi-dir", "", "give devices by names of CDI, whose specification goes to this folder; empty: by nodes and mounts")
	f.BoolVar(&s.reset, "reset", false, "reset a whole device before each start of its container; the daemon needs the right to")
	f.DurationVar(&s.grace, "grace", 10*time.Second, "how long the daemon may be silent before devices are unhealthy")
	f.StringVar(&s.http, "http", "", "serve /metrics, /healthz, and /readyz, which is 200 while registered, at this address")
	f.StringVar(&s.pods, "pod-resources", "/var/lib/kubelet/pod-resources/kubelet.sock", "the kubelet's socket that lists the devices of pods, for /metrics; empty: do not ask")
	f.StringVar(&s.level, "log-level", "info", "debug, info, warn or error")
	return root
}

// fromEnvironment sets the flags that the command line does not have.
func fromEnvironment(f *pflag.FlagSet, getenv func(string) string) error {
	return command.FromEnvironment("NFPLUGIN_", f, getenv)
}

// options reads the settings.
func (s *settings) options(stderr io.Writer) (o plugin.Options, err error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.level)); err != nil {
		return o, fmt.Errorf("--log-level: %w", err)
	}
	o = plugin.Options{
		Folder: s.folder, Sockets: s.sockets, CDI: s.cdi, Reset: s.reset, Grace: s.grace,
		Log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})),
	}
	if !strings.HasPrefix(s.address, "unix:") {
		return o, fmt.Errorf("--address %q: want a UNIX socket, as the devices are those of this node", s.address)
	}
	if o.Shares, err = plugin.ParseShares(s.shares); err != nil {
		return o, fmt.Errorf("--shares: %w", err)
	}
	o.Client, err = plugin.Dial(s.address)
	return o, err
}

// serve runs the plugin, with metrics and probes if they have an address.
func (s *settings) serve(ctx context.Context, o plugin.Options) error {
	if s.http == "" {
		return plugin.Run(ctx, o)
	}
	registry := prometheus.NewRegistry()
	if s.pods != "" {
		pods, err := plugin.NewPods(s.pods, o.Log)
		if err != nil {
			return fmt.Errorf("--pod-resources: %w", err)
		}
		defer func() { _ = pods.Close() }() // the server has ended
		registry.MustRegister(pods)
	}
	var registered atomic.Bool
	o.Registered = registered.Store
	handler := metrics.Handler(metrics.HandlerOptions{Gatherer: registry, Logger: o.Log, Ready: func(context.Context) error {
		if !registered.Load() {
			return errors.New("not registered with the kubelet")
		}
		return nil
	}})
	return command.WithProbes(ctx, o.Log, s.http, handler, func(ctx context.Context) error { return plugin.Run(ctx, o) })
}

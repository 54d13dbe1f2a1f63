// Command nfdra is the driver of a node for dynamic resource allocation: it gives the devices of
// nfcommsd to claims of Kubernetes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/nfcomms/nfcomms/kubernetes/dra/internal/driver"
	"github.com/nfcomms/nfcomms/kubernetes/internal/command"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// settings are those of the command line.
type settings struct {
	address, node, kubelet, config, http, level, memory string
	sockets, shares                                     []string
	options                                             driver.Options
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
		Use:   "nfdra",
		Short: "Give the devices of nfcommsd to claims of Kubernetes",
		Long: `Give the devices of nfcommsd to claims of Kubernetes, as the driver ` + driver.Name + ` of this node
for dynamic resource allocation. A container opens its device as "env:". Each flag has
a variable, as NFDRA_CDI_DIR for --cdi-dir; the flag wins.`,
		Args:    cobra.NoArgs,
		Version: strings.TrimSpace(version + " " + commit), SilenceUsage: true, SilenceErrors: true,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags(), getenv) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.read(stderr); err != nil {
				return err
			}
			*started = true
			defer func() { _ = s.options.Client.Close() }() // all calls have ended
			return s.serve(cmd.Context())
		},
	}
	f := root.Flags()
	f.StringVar(&s.address, "address", control.DefaultAddress, "the daemon's UNIX socket")
	f.StringVar(&s.node, "node", "", "the name of this node in the cluster")
	f.StringVar(&s.kubelet, "kubelet-dir", "/var/lib/kubelet", "folder of the kubelet")
	f.StringVar(&s.config, "kubeconfig", "", "how to reach the API server; empty: as a pod does")
	f.StringSliceVar(&s.sockets, "sockets", []string{"/run/nfsim"}, "folders below which sockets of shared devices may lie; no other file of the host is given to a container")
	f.StringSliceVar(&s.shares, "shares", nil, "claims that a device has room for, as N (8) for each shared one, or NAME=N; 0 gives it as a whole")
	f.StringVar(&s.memory, "memory", "16Gi", "memory that claims of a shared device may map together, 64Mi or more")
	f.StringVar(&s.options.CDI, "cdi-dir", "/var/run/cdi", "folder for a specification of each claim, which the runtime reads")
	f.BoolVar(&s.options.Reset, "reset", false, "reset a whole device before a claim gets it; the daemon needs the right to")
	f.BoolVar(&s.options.Evict, "evict", false, "end the pods that have a device once it is not healthy")
	f.DurationVar(&s.options.Grace, "grace", 10*time.Second, "how long the daemon may be silent before devices are unhealthy")
	f.StringVar(&s.http, "http", "", "serve /healthz, and /readyz, which is 200 while registered, at this address")
	f.StringVar(&s.level, "log-level", "info", "debug, info, warn or error")
	return root
}

// fromEnvironment sets the flags that the command line does not have.
func fromEnvironment(f *pflag.FlagSet, getenv func(string) string) error {
	return command.FromEnvironment("NFDRA_", f, getenv)
}

// read makes options of the settings.
func (s *settings) read(stderr io.Writer) (err error) {
	o := &s.options
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.level)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	o.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(o.Log)
	if !strings.HasPrefix(s.address, "unix:") {
		return fmt.Errorf("--address %q: want a UNIX socket, as the devices are those of this node", s.address)
	}
	if s.node == "" {
		return errors.New("--node: want the name of this node")
	}
	o.Node, o.Sockets = s.node, s.sockets
	o.Registry, o.State = filepath.Join(s.kubelet, "plugins_registry"), filepath.Join(s.kubelet, "plugins", driver.Name)
	if o.Shares, err = plugin.ParseShares(s.shares); err != nil {
		return fmt.Errorf("--shares: %w", err)
	}
	memory, err := resource.ParseQuantity(s.memory)
	if err != nil || memory.Value() < driver.MemoryUnit {
		return fmt.Errorf("--memory %q: want a quantity of bytes such as 16Gi, from 64Mi", s.memory)
	}
	o.Memory = memory.Value()
	config, err := clientcmd.BuildConfigFromFlags("", s.config)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if o.API, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	o.Client, err = plugin.Dial(s.address)
	return err
}

// serve runs the driver, with probes if they have an address.
func (s *settings) serve(ctx context.Context) error {
	var registered atomic.Bool
	s.options.Registered = registered.Store
	if s.http == "" {
		return driver.Run(ctx, s.options)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !registered.Load() {
			http.Error(w, "not registered with the kubelet", http.StatusServiceUnavailable)
		}
	})
	return command.WithProbes(ctx, s.options.Log, s.http, mux, func(ctx context.Context) error { return driver.Run(ctx, s.options) })
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/exporter-toolkit/web"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/listen"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// daemon is one run of nfcommsd.
type daemon struct {
	conf       *config.Loaded // what is in force; changed by reload alone
	log        *slog.Logger
	level      *slog.LevelVar
	authorizer *access.Authorizer
	tls        *access.TLS // nil without certificates
	control    *control.Server
	liveness   liveness
	calls      *grpcprom.ServerMetrics
	refused    *refusals
	reloads    reloads
	nodes      string // pattern of the device nodes to look for
	unknown    int    // names in roles that nobody has; changed by setPolicy alone

	local, remote *grpc.Server
	webs          []*http.Server
	serving       sync.WaitGroup
	failed        chan error // of a listener that stopped; has room for all
}

// serve runs the daemon until a signal ends it. load reads the configuration
// again.
func serve(conf *config.Loaded, load func() (*config.Loaded, error), signals <-chan os.Signal, stderr io.Writer) error {
	log, level := newLogger(conf.Log, stderr)
	logGRPC(log)
	s, err := openSockets(conf)
	if err != nil {
		return err
	}
	logStart(log, conf, s)
	for _, w := range warnings(conf) {
		log.Warn("configuration", "error", w)
	}
	d, err := newDaemon(conf, log, level)
	if err != nil {
		s.close()
		return err
	}
	d.discover()
	d.openDevices(conf.Devices)
	d.start(s)
	notify(log, systemd.SdNotifyReady, "STATUS="+statusLine(d.control))
	log.Info("ready", "devices", len(conf.Devices), "status", statusLine(d.control))
	ctx, cancel := context.WithCancel(context.Background())
	var minding sync.WaitGroup
	minding.Go(func() { d.mind(ctx) })
	err = d.wait(load, signals)
	d.drain(signals)
	cancel()
	minding.Wait()
	d.serving.Wait()
	d.authorizer.Flush()
	log.Info("stopped")
	return err
}

// logStart logs what a person who reads the log looks for first.
func logStart(log *slog.Logger, conf *config.Loaded, s *sockets) {
	version, commit := control.Build()
	args := []any{"version", version, "commit", commit, "file", conf.File}
	for _, l := range []struct {
		name string
		all  []net.Listener
	}{{localListener, s.local}, {tlsListener, s.remote}, {webListener, s.web}} {
		var addresses []string
		for _, each := range l.all {
			addresses = append(addresses, each.Addr().String())
		}
		args = append(args, l.name, strings.Join(addresses, ","))
	}
	log.Info("starting", args...)
}

// newDaemon makes everything that needs no socket and no device.
func newDaemon(conf *config.Loaded, log *slog.Logger, level *slog.LevelVar) (*daemon, error) {
	policy, unknown, err := conf.Policy()
	if err != nil {
		return nil, err
	}
	d := &daemon{
		conf: conf, log: log, level: level,
		authorizer: access.NewAuthorizer(policy, access.Methods(), log),
		control: control.New(control.Options{
			Logger: log, Interval: conf.Health.Interval, ProbeTimeout: conf.Health.Timeout, Caller: access.CallerOf,
		}),
		liveness: liveness{known: make(map[string]bool)}, nodes: deviceNodes,
		calls: newCallMetrics(),
	}
	d.refused = newRefusals(d.logRefusal)
	d.setPolicy(policy, unknown)
	d.reloads.succeeded()
	if conf.TCP.Files.Certificate != "" {
		d.tls, err = access.NewTLS(conf.TCP.Files, log)
	}
	return d, err
}

// openTime is how long a device keeps the daemon waiting; it is opened behind
// its back then.
const openTime = 10 * time.Second

// openDevices opens devices side by side and waits for the first try of each.
func (d *daemon) openDevices(devices map[string]string) {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	var opening sync.WaitGroup
	for name, address := range devices {
		opening.Go(func() {
			if err := d.control.Open(ctx, name, address); err != nil {
				d.log.Error("device not listed", "device", name, "error", err)
			}
		})
	}
	opening.Wait()
}

// start serves on every socket.
func (d *daemon) start(s *sockets) {
	d.failed = make(chan error, len(s.all()))
	limits := d.conf.Limits.Caller
	limits.Owner, limits.Request = d.authorizer.Owner, d.conf.Limits.Handshake
	if len(s.local) > 0 {
		d.local = d.newLocal(refusing{access.LocalCredentials(limits), d, localListener})
		d.calls.InitializeMetrics(d.local)
	}
	if len(s.remote) > 0 {
		d.remote = d.newRemote(settling{refusing{d.tls.Credentials(limits), d, tlsListener}})
		d.calls.InitializeMetrics(d.remote)
	}
	for _, l := range s.local {
		d.serveOn(d.limitLocal(l), d.local.Serve)
	}
	for _, l := range s.remote {
		d.serveOn(listen.Limit(l, d.limits(tlsListener, tlsPace)), d.remote.Serve)
	}
	if len(s.web) == 0 {
		return
	}
	handler := paced(d.webHandler())
	for _, l := range s.web {
		if d.conf.HTTP.WebConfig == "" && isOpen(l) {
			d.log.Warn("metrics are open to everybody who reaches the address: see http.web_config", "address", l.Addr().String())
		}
		server := d.newWeb(handler)
		d.webs = append(d.webs, server)
		d.serveOn(d.limitWeb(l), func(l net.Listener) error {
			return web.Serve(l, server, d.webFlags(), d.log)
		})
	}
}

// serveOn runs a server on a listener. An end before stop is a failure.
func (d *daemon) serveOn(l net.Listener, serve func(net.Listener) error) {
	d.serving.Go(func() {
		err := serve(l)
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			d.failed <- fmt.Errorf("serve on %s: %w", l.Addr(), err)
		}
	})
}

// wait handles signals until one of them, or a failure, ends the daemon.
func (d *daemon) wait(load func() (*config.Loaded, error), signals <-chan os.Signal) error {
	again := time.NewTicker(namesAgain)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			d.lookAgain()
			d.openDevices(d.discover())
			if d.tls != nil {
				_ = d.tls.Reload() // which logs what is wrong
			}
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				d.log.Info("stopping", "signal", sig.String())
				return nil
			}
			d.reload(load)
		case err := <-d.failed:
			d.log.Error("stopping", "error", err)
			return err
		}
	}
}

// Command service is a service on a device: HTTP uploads of any size are streamed to
// eight device processes, which sum them up with CRC-32. Memory is bounded, a client
// that is too fast waits at its socket, one that stops or goes frees its place, and a
// device that is reset or loses a process under load answers what was under way.
//
//	go run ./apps/service
//	go run ./apps/service --serve 127.0.0.1:8080
//	curl --data-binary @FILE http://127.0.0.1:8080/checksum
//
// Without --serve it puts itself under load with vegeta, resets the device and ends
// its processes meanwhile, and checks every answer. Metrics, health and traces are at
// --admin. Exit codes: 0 verified or stopped, 1 failed, 2 bad input, 130 interrupted.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
	"github.com/nfcomms/nfcomms/pkg/program"
)

//go:embed device
var source embed.FS

// Sizes and times of the work on the device.
const (
	processes = 8
	prefix    = 8               // bytes before a chunk: the sum of what came before
	chunkSize = 256 << 10       // what device/crc.c takes at once
	patience  = 5 * time.Second // for a process, and for what it does
)

// errDevice means that the device did not sum up a chunk.
var errDevice = errors.New("the device does not work, try again later")

// settings is the command line.
type settings struct {
	address, serve, admin string
	places, rate, size    int
	idle, grace, duration time.Duration
}

func main() { command.Main("service", uploads) }

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := command.Flags("service")
	f.StringVar(&s.address, "address", "sim:", "device `address`")
	f.StringVar(&s.serve, "serve", "", "`address` to serve at until Ctrl-C, in place of the load test")
	f.StringVar(&s.admin, "admin", "127.0.0.1:0", "`address` of /metrics, /healthz, /readyz and /debug/pprof")
	f.IntVar(&s.places, "places", 64, "`number` of uploads worked on at once, 256 KiB each; others wait")
	f.DurationVar(&s.idle, "idle", 10*time.Second, "how `long` an upload may stand still")
	f.DurationVar(&s.grace, "grace", 10*time.Second, "how `long` uploads may go on after Ctrl-C")
	f.DurationVar(&s.duration, "duration", 3*time.Second, "how `long` the load test attacks")
	f.IntVar(&s.rate, "rate", 100, "`number` of uploads per second in it")
	f.IntVar(&s.size, "size", 1<<20, "`bytes` of the largest of them")
	if err := command.Parse(f, args, stderr, "service [flags]    a service that sums up uploads on a device"); err != nil {
		return s, err
	}
	switch {
	case s.places < 1 || s.places > 1<<16:
		return s, command.Inputf("--places %d is not 1 to 65536", s.places)
	case s.idle <= 0 || s.grace <= 0 || s.duration <= 0:
		return s, command.Inputf("--idle, --grace and --duration are more than 0")
	case s.rate < 1 || s.rate > 100_000:
		return s, command.Inputf("--rate %d is not 1 to 100000", s.rate)
	case s.size < 0 || s.size > 1<<30:
		return s, command.Inputf("--size %d is not 0 bytes to 1 GiB", s.size)
	}
	return s, command.NoArguments(f)
}

func uploads(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dev, err := nfcomms.Open(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	log := slog.New(slog.DiscardHandler)
	if s.serve != "" {
		log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	return s.run(ctx, dev, log, stdout)
}

// run serves until ctx ends or the load test is over. The device outlives the web
// server, and that the uploads it let in.
func (s settings) run(ctx context.Context, dev *nfcomms.Device, log *slog.Logger, stdout io.Writer) (err error) {
	p, err := newPool(ctx, dev, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	reg := prometheus.NewRegistry()
	at := s.serve
	if at == "" {
		at = "127.0.0.1:0"
	}
	url, stop, err := listen(at, newServer(p, s.places, s.idle, reg).handler())
	if err != nil {
		return command.InputError{Err: err}
	}
	defer func() { err = errors.Join(err, stop(s.grace)) }()
	admin, stopAdmin, err := listen(s.admin, operate(p, dev, reg))
	if err != nil {
		return command.InputError{Err: err}
	}
	defer func() { err = errors.Join(err, stopAdmin(time.Second)) }()
	if s.serve == "" {
		return s.attack(ctx, dev, p, url, stdout)
	}
	fmt.Fprintf(stdout, "uploads: POST %s/checksum\noperators: %s/metrics\n", url, admin)
	<-ctx.Done()
	return nil // stopped as it should
}

// newPool starts the processes that sum chunks up. A chunk may be summed up twice, as it is still here.
func newPool(ctx context.Context, dev *nfcomms.Device, log *slog.Logger) (*pool.Pool, error) {
	image, err := program.Build(ctx, source, program.Options{})
	if err != nil {
		return nil, err
	}
	return pool.New(ctx, dev, pool.Options{
		Images: [][]byte{image}, Program: nfcomms.Program{Name: "uploads.crc"}, Processes: processes,
		Transfers: true, Idempotent: true, Attempts: 5, Timeout: patience, Logger: log,
	})
}

// Command dashboard shows examples/operated at work: it starts the service and a
// real Prometheus that scrapes it, prints what Prometheus knows and what nfctl
// sees, and stops everything. Run it from the top of the tree.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/internal/prom"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

var picture = flag.String("picture", "bin/dashboard.svg", "file for the picture of the dashboard")

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

// patience bounds the demonstration after the build.
const patience = 2 * time.Minute

func demo(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "nfcomms-demo")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, os.RemoveAll(dir)); err == nil {
			fmt.Println("both have ended, and their files are gone")
		}
	}()
	step("build the service and nfctl")
	build := subprocess.Command(ctx, "go", "build", "-buildvcs=false", "-o", dir, "./examples/operated", "./cmd/nfctl")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	step("start the service: two goroutines send 256 KiB at a time with SendInd, a millisecond apart; it serves nfctl and Prometheus")
	s, err := startService(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	fmt.Printf("control plane: %s\nmetrics: http://%s/metrics\n", s.control, s.metrics)

	step("start Prometheus, which scrapes it five times a second")
	p, err := prom.Start(prom.Options{Root: ".", Dir: dir, Targets: []string{s.metrics}, Interval: time.Second / 5, Rules: rules()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	fmt.Println(p.URL)
	if err := ask(ctx, p); err != nil {
		return err
	}
	if err := draw(ctx, p); err != nil {
		return err
	}
	for _, args := range [][]string{{"top", "--once"}, {"health"}} {
		step("nfctl " + strings.Join(args, " "))
		if err := s.nfctl(ctx, args...); err != nil {
			return err
		}
	}
	step("stop Prometheus and the service")
	return nil
}

// rules are the rule files, as absolute paths.
func rules() []string {
	path, err := filepath.Abs("deploy/prometheus/nfcomms.rules.yml")
	if err != nil {
		return nil
	}
	return []string{path}
}

func step(what string) { fmt.Printf("\n== %s\n", what) }

// scrapes is how many scrapes a rate is taken from.
const scrapes = 20

// ask prints the answers to a few questions, the throughput first, once
// Prometheus has scraped often enough.
func ask(ctx context.Context, p *prom.Server) error {
	step(fmt.Sprintf("ask Prometheus, after %d scrapes", scrapes))
	enough := func(s []prom.Sample) bool { return len(s) > 0 && s[0].Value >= scrapes }
	if _, err := p.Until(ctx, `count_over_time(nfcomms_messages_total{path="indirect",direction="h2d"}[1m])`, enough); err != nil {
		return err
	}
	for _, q := range []struct {
		what, expr, unit string
		scale            float64
	}{
		{"throughput", `sum by (device, direction) (rate(nfcomms_payload_bytes_total[3s])) > 0`, "MB/s", 1e-6},
		{"transfers", `sum by (device, direction) (rate(nfcomms_messages_total{path="indirect"}[3s])) > 0`, "a second", 1},
		{"99 % of the transfers within", `histogram_quantile(0.99, sum by (device, direction, le) (rate(nfcomms_transfer_duration_seconds_bucket[3s]))) > 0`, "ms", 1e3},
		{"devices ready", `sum(nfcomms_device_state{state="ready"})`, "", 1},
		{"alerts firing", `count(ALERTS{alertstate="firing"}) or vector(0)`, "", 1},
	} {
		answer, err := p.Until(ctx, q.expr, func(s []prom.Sample) bool { return len(s) > 0 })
		if err != nil {
			return err
		}
		fmt.Println(q.expr)
		for _, s := range answer {
			line := fmt.Sprintf("    %s: %.4g %s %s", q.what, s.Value*q.scale, q.unit, labels(s))
			fmt.Println(strings.TrimRight(line, " "))
		}
	}
	return nil
}

// shown is the time that the picture shows, and rate the one that its rates are
// taken over.
const (
	shown = 12 * time.Second
	rate  = "2s"
)

// draw writes how the dashboard looks, from the same queries as Grafana's.
func draw(ctx context.Context, p *prom.Server) error {
	step("draw the dashboard from the answers of Prometheus to its queries")
	d, err := prom.ReadDashboard("deploy/grafana/nfcomms.json")
	if err != nil {
		return err
	}
	enough := func(s []prom.Sample) bool { return len(s) > 0 && s[0].Value >= shown.Seconds()*5 }
	if _, err := p.Until(ctx, `count_over_time(nfcomms_messages_total{path="indirect",direction="h2d"}[1m])`, enough); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*picture), 0o755); err != nil {
		return err
	}
	file, err := os.Create(*picture)
	if err != nil {
		return err
	}
	now := time.Now()
	look := prom.Picture{From: now.Add(-shown), To: now, Step: 200 * time.Millisecond, Rate: rate}
	if err := errors.Join(look.Write(ctx, file, p, d), file.Close()); err != nil {
		return err
	}
	fmt.Println(*picture)
	return nil
}

// labels prints the labels of a sample in a fixed order.
func labels(s prom.Sample) string {
	var list []string
	for name, value := range s.Labels {
		list = append(list, fmt.Sprintf("%s=%q", name, value))
	}
	sort.Strings(list)
	if len(list) == 0 {
		return ""
	}
	return "{" + strings.Join(list, ",") + "}"
}

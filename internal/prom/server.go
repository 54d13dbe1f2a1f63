package prom

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Program returns the path of "prometheus" or "promtool": from PATH, or from
// where scripts/prometheus.sh put it below root, the top of this tree.
func Program(root, name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path, err := filepath.Abs(filepath.Join(root, ".cache", "prometheus", "usr", "bin", name))
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find %s: run scripts/prometheus.sh: %w", name, err)
	}
	return path, nil
}

// Options are what a server does.
type Options struct {
	// Root is the top of this tree.
	Root string
	// Dir is a folder for configuration and data; the caller removes it.
	Dir string
	// Targets are the addresses to scrape, "127.0.0.1:7451", under job
	// nfcomms.
	Targets []string
	// Interval is the time between scrapes and between looks at the rules, and the most that a
	// scrape may take: one of a busy process, on a busy machine, takes hundreds of milliseconds.
	// Default: 1 s.
	Interval time.Duration
	// Rules are rule files.
	Rules []string
	// Native makes the server take native histograms.
	Native bool
}

// Server is a Prometheus that runs.
type Server struct {
	// URL is its address, "http://127.0.0.1:40123".
	URL string

	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed when the process has ended
}

// startTime bounds the start; loading takes well under a second.
const startTime = time.Minute

// answerTime bounds a question about what went wrong.
const answerTime = 5 * time.Second

// Start runs a server and waits until it listens.
func Start(o Options) (*Server, error) {
	program, err := Program(o.Root, "prometheus")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(o.Dir, "prometheus.yml")
	if err := os.WriteFile(config, o.config(), 0o600); err != nil {
		return nil, fmt.Errorf("start prometheus: %w", err)
	}
	args := []string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(o.Dir, "data"),
		"--web.listen-address=127.0.0.1:0",
	}
	if o.Native {
		args = append(args, "--enable-feature=native-histograms")
	}
	s := &Server{cmd: exec.Command(program, args...), done: make(chan struct{})}
	s.cmd.Dir = o.Dir
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("start prometheus: %w", err)
	}
	return s, nil
}

// config returns the configuration file.
func (o *Options) config() []byte {
	interval := o.Interval
	if interval == 0 {
		interval = time.Second
	}
	quoted := func(list []string) string {
		var q []string
		for _, s := range list {
			q = append(q, fmt.Sprintf("%q", s))
		}
		return strings.Join(q, ", ")
	}
	ms := interval.Milliseconds()
	return fmt.Appendf(nil, `global: {scrape_interval: %dms, scrape_timeout: %dms, evaluation_interval: %dms}
rule_files: [%s]
scrape_configs:
- job_name: nfcomms
  static_configs: [{targets: [%s]}]
`, ms, ms, ms, quoted(o.Rules), quoted(o.Targets))
}

var listens = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// start starts the process and reads its log until it says where it listens.
func (s *Server) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.cmd.Stdout, s.cmd.Stderr, s.log = w, w, r
	err = s.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return err
	}
	late := time.AfterFunc(startTime, func() { _ = s.cmd.Process.Kill() })
	var said []string
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		said = append(said, line)
		if m := listens.FindStringSubmatch(line); m != nil {
			s.URL = "http://" + m[1]
			break
		}
		if err != nil {
			late.Stop()
			r.Close()
			return fmt.Errorf("%w: %s", errors.Join(err, s.cmd.Wait()), strings.Join(said, ""))
		}
	}
	late.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, lines) // ends with the process
		close(s.done)
	}()
	return nil
}

// Stop ends the server and waits until it has.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	late := time.AfterFunc(startTime, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	<-s.done
	err := s.cmd.Wait()
	s.log.Close()
	if err != nil {
		return fmt.Errorf("stop prometheus: %w", err)
	}
	return nil
}

// Until asks for an expression until it has an answer that ok accepts, at most
// until ctx ends. The error then holds the last answer.
func (s *Server) Until(ctx context.Context, expr string, ok func([]Sample) bool) ([]Sample, error) {
	for {
		samples, err := s.Query(ctx, expr)
		if err == nil && ok(samples) {
			return samples, nil
		}
		select {
		case <-ctx.Done():
			ended := ctx.Err()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
			defer cancel()
			return samples, fmt.Errorf("wait for %s: %w: last answer %v", expr, errors.Join(ended, err, s.scrapeError(ctx)), samples)
		case <-s.done:
			return nil, errors.New("prometheus has ended")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

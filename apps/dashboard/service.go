package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// service is the example at work.
type service struct {
	dir     string
	control string // address of its control plane
	metrics string // host:port of its metrics
	cmd     *exec.Cmd
	log     *os.File
}

// startService starts the program that was built into dir and reads where it
// listens.
func startService(ctx context.Context, dir string) (*service, error) {
	log, err := os.Create(filepath.Join(dir, "service.log"))
	if err != nil {
		return nil, err
	}
	s := &service{dir: dir, log: log}
	s.cmd = exec.CommandContext(ctx, filepath.Join(dir, "operated"),
		"-socket", filepath.Join(dir, "control.sock"), "-http", "127.0.0.1:0")
	s.cmd.Stderr = log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 10 * time.Second
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("service did not start: %w", errors.Join(s.cmd.Wait(), s.said()))
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "control plane":
			s.control = value
		case "metrics":
			s.metrics = strings.TrimSuffix(strings.TrimPrefix(value, "http://"), "/metrics")
			return s, nil
		}
	}
}

// said returns what the service logged, as an error.
func (s *service) said() error {
	defer s.log.Close()
	if _, err := s.log.Seek(0, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(s.log)
	return errors.Join(err, errors.New(strings.TrimSpace(string(text))))
}

// nfctl runs nfctl against the service.
func (s *service) nfctl(ctx context.Context, args ...string) error {
	cmd := subprocess.Command(ctx, filepath.Join(s.dir, "nfctl"), append([]string{"--address", s.control}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nfctl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// stop ends the service and waits until it has.
func (s *service) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("service: %w", errors.Join(err, s.said()))
	}
	return s.log.Close()
}

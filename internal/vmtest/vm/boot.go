//go:build linux

package vm

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
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// Events are called, one at a time, while a machine runs.
type Events struct {
	Frame   func(wire.Frame)  // what the guest reports
	Console func(line string) // what its kernel logs
}

// Outcome is how a machine ended.
type Outcome struct {
	Status int           // the exit status of the machine's process, -1 after a signal
	Stderr string        // the end of what that wrote to its standard error
	Spent  time.Duration // processor time of that process
}

// Boot runs the machine until it ends, or until ctx does. The error says why the
// run proves nothing: it did not start, the results broke off, or ctx ended;
// whether the guest came to its end is for the caller to see from the frames.
func (m Machine) Boot(ctx context.Context, ev Events) (Outcome, error) {
	cmd := exec.Command(m.QEMU, m.Args()...)
	stderr := &tail{next: io.Discard}
	cmd.Stderr = stderr
	if m.Console {
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		return m.run(ctx, cmd, stderr, nil)
	}
	pipes, err := newPipes(2)
	if err != nil {
		return Outcome{}, err
	}
	defer pipes.close()
	cmd.Stdout = pipes.w[0]
	cmd.ExtraFiles = pipes.w[1:]
	var mu sync.Mutex
	return m.run(ctx, cmd, stderr, func() error {
		pipes.closeWriters() // the machine has its own; ours would keep the readers waiting
		var readers sync.WaitGroup
		readers.Go(func() {
			lines(pipes.r[1], func(line string) {
				mu.Lock()
				defer mu.Unlock()
				ev.Console(line)
			})
		})
		err := wire.Decode(pipes.r[0], func(f wire.Frame) {
			mu.Lock()
			defer mu.Unlock()
			ev.Frame(f)
		})
		_, _ = io.Copy(io.Discard, pipes.r[0]) // after an error: the machine must not block
		readers.Wait()
		return err
	})
}

// run starts cmd, reads what it writes until it ends, and kills it with ctx.
func (m Machine) run(ctx context.Context, cmd *exec.Cmd, stderr *tail, read func() error) (Outcome, error) {
	p, err := start(filepath.Base(m.QEMU), cmd, m.Console)
	if err != nil {
		return Outcome{}, err
	}
	result := make(chan error, 1) // one result, read once
	go func() {
		if read == nil {
			result <- nil
			return
		}
		result <- read()
	}()
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = p.stop() // how it dies does not matter any more
		err = fmt.Errorf("machine stopped: %w", context.Cause(ctx))
	}
	err = errors.Join(err, <-result)
	return Outcome{Status: p.status(), Stderr: string(stderr.text), Spent: p.spent()}, err
}

// pipes are pairs of files.
type pipes struct {
	r, w []*os.File
}

func newPipes(n int) (*pipes, error) {
	p := new(pipes)
	for range n {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		p.r, p.w = append(p.r, r), append(p.w, w)
	}
	return p, nil
}

func (p *pipes) closeWriters() {
	for _, f := range p.w {
		f.Close()
	}
	p.w = nil
}

func (p *pipes) close() {
	p.closeWriters()
	for _, f := range p.r {
		f.Close()
	}
}

// lines calls f for every line of r, however long.
func lines(r io.Reader, f func(string)) {
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadString('\n')
		if line != "" {
			f(strings.TrimRight(line, "\r\n"))
		}
		if err != nil {
			return
		}
	}
}

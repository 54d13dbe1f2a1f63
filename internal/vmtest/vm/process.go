//go:build linux

package vm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a child that ends with us, whatever happens: the kernel kills it
// when we die, and nobody else waits for it.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it ended
	err  error         // of Wait; valid after done
}

// grace is what a process gets between SIGTERM and SIGKILL, and patience what it gets where it ends by
// itself, also to write its report, and its output to be read.
const (
	grace    = 3 * time.Second
	patience = 30 * time.Second
)

// start runs cmd. Unless foreground, it has a process group of its own, so that
// Ctrl-C reaches us alone and we end things in order.
func start(name string, cmd *exec.Cmd, foreground bool) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !foreground, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// signal sends one signal; a process that has ended takes none.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// wait reports whether the process ended within d.
func (p *process) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// stop ends the process, gently first, and returns how it ended.
func (p *process) stop() error {
	err := p.signal(syscall.SIGTERM)
	if !p.wait(grace) {
		err = errors.Join(err, p.signal(syscall.SIGKILL))
		<-p.done
	}
	return errors.Join(err, p.err)
}

// status returns the exit status, or -1 after a signal. Valid after done.
func (p *process) status() int { return p.cmd.ProcessState.ExitCode() }

// spent returns the processor time that the process took. Valid after done.
func (p *process) spent() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// tail keeps the end of what is written to it.
type tail struct {
	next io.Writer
	text []byte
}

const tailBytes = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	if n := len(t.text) - tailBytes; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return t.next.Write(b)
}

//go:build linux

package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// soakedProcess is the process of a device that this starts, ends and starts again.
type soakedProcess struct {
	command []string
	cmd     *exec.Cmd
	idle    int // descriptors that it has without clients
}

// newSoaked starts the process of a device.
func newSoaked(command string) (*soakedProcess, error) {
	p := &soakedProcess{command: strings.Fields(command)}
	if err := p.start(); err != nil {
		return nil, cli.UsageError{Err: fmt.Errorf("--device: %w", err)}
	}
	return p, nil
}

// start starts it, and waits until it reports that it listens.
func (p *soakedProcess) start() error {
	p.cmd = subprocess.Command(context.Background(), p.command[0], p.command[1:]...) // an interrupt is the starter's
	p.cmd.Env = append(os.Environ(), "GOTRACEBACK=crash")
	var says strings.Builder
	p.cmd.Stderr = &says
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	if lines := bufio.NewScanner(out); !lines.Scan() || !strings.HasPrefix(lines.Text(), "listening") {
		p.kill()
		return fmt.Errorf("%s does not say that it listens: %s", p.command[0], strings.TrimSpace(says.String()))
	}
	p.idle, err = p.descriptors()
	return err
}

// descriptors counts those that are open.
func (p *soakedProcess) descriptors() (int, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(list), err
}

// kill ends it where it stands; freeze stops it for a moment.
func (p *soakedProcess) kill() {
	_ = p.cmd.Cancel() // it may have ended
	_ = p.cmd.Wait()
}

func (p *soakedProcess) freeze(d time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// end asks it to end, and waits.
func (p *soakedProcess) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("it had ended: %w", err), p.cmd.Wait())
	}
	timer := time.AfterFunc(soakPatience, func() { _ = p.cmd.Cancel() })
	defer timer.Stop()
	return p.cmd.Wait()
}

// settle lets the clients go, and requires that the device keeps nothing of theirs.
func (p *soakedProcess) settle(b *Books, clients []*soakProcess) error {
	if p == nil {
		return nil
	}
	for _, c := range clients {
		c.leave()
	}
	var n int
	for until := time.Now().Add(soakPatience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		var err error
		if n, err = p.descriptors(); err != nil {
			return fmt.Errorf("the device ended by itself: %w", err)
		}
		if n <= p.idle {
			return nil
		}
	}
	b.wrong("the device keeps %d descriptors of clients that have gone", n-p.idle)
	return nil
}

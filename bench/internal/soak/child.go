//go:build linux

package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// The processes of a soak are this binary again, under hidden commands. The job is
// the argument; the process prints "ready", and in the end what it came to. A line on
// its standard input asks for the end; the end of its input is that of its starter.

const (
	soakWriteCommand  = "soak-write"
	soakReadCommand   = "soak-read"
	soakClientCommand = "soak-client"
)

// soakJob is what a process does.
type soakJob struct {
	Address string `json:"address,omitempty"` // of the device, or
	Ring    string `json:"ring,omitempty"`    // the name of the ring
	Seed    uint64 `json:"seed"`
	Spoil   uint64 `json:"spoil"`
	// State is what a client does until it is killed; none: it exchanges.
	State string `json:"state,omitempty"`
	// Mortal is a device that may be lost: the client finds the next one and goes on.
	Mortal bool `json:"mortal,omitempty"`
}

// soakEnd is what it came to.
type soakEnd struct {
	Operations uint64 `json:"operations"`
	Bytes      uint64 `json:"bytes"`
	Resets     uint64 `json:"resets,omitempty"` // how often a device was lost, and found again
	Wrong      string `json:"wrong,omitempty"`  // what was not as it should be
	Why        string `json:"why"`              // why it ended: one of the constants, or an error
}

// Why a process ended.
const (
	soakAsked    = "asked"
	soakClosed   = "the other side closed"
	soakPeerDied = "the other side died"
	soakNoDevice = "the device was lost"
)

// soakPatience bounds what should end by itself: a call that hangs is a fault.
const soakPatience = time.Minute

func soakCommand(name string, run func(ctx context.Context, j *soakJob, ready func(), asked <-chan struct{}) soakEnd) *cobra.Command {
	return &cobra.Command{
		Use: name + " JOB", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var j soakJob
			if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			asked, alone := make(chan struct{}), make(chan struct{})
			go func() {
				in := bufio.NewReader(cmd.InOrStdin())
				if _, err := in.ReadString('\n'); err == nil {
					close(asked)
					_, _ = io.Copy(io.Discard, in)
				}
				cancel() // the starter has gone, or wants no more of it
				close(alone)
			}()
			out := json.NewEncoder(cmd.OutOrStdout())
			end := run(ctx, &j, func() { _ = out.Encode("ready") }, asked) // who does not hear it has gone
			err := out.Encode(end)
			<-alone // what it holds stays until its starter has looked at it
			return err
		},
	}
}

// soakProcess is such a process, seen from its starter.
type soakProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// startSoak starts a process in a group of its own: an interrupt is the starter's.
func startSoak(command string, j soakJob) (*soakProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	job, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	p := &soakProcess{cmd: exec.Command(self, command, string(job))}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	p.out = json.NewDecoder(out)
	return p, nil
}

// ready waits until the process has what it works on.
func (p *soakProcess) ready() error {
	var word json.RawMessage
	if err := p.within(func() error { return p.out.Decode(&word) }); err != nil {
		return err
	}
	var e soakEnd
	if json.Unmarshal(word, &e) == nil {
		return errors.New(e.Why)
	}
	return nil
}

// end waits for what the process came to.
func (p *soakProcess) end() (e soakEnd, err error) {
	err = p.within(func() error { return p.out.Decode(&e) })
	return e, err
}

// within kills the process if fn takes too long.
func (p *soakProcess) within(fn func() error) error {
	timer := time.AfterFunc(soakPatience, p.kill)
	err := fn()
	if !timer.Stop() && err != nil {
		err = fmt.Errorf("nothing came within %v: %w", soakPatience, err)
	}
	return err
}

// ask asks the process to end; kill ends it where it stands, freeze stops it for a
// moment.
func (p *soakProcess) ask()  { _, _ = io.WriteString(p.in, "end\n") } // it may have ended
func (p *soakProcess) kill() { _ = p.cmd.Process.Kill() }
func (p *soakProcess) freeze(d time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// leave lets the process go and waits for it. How it ended was seen before.
func (p *soakProcess) leave() {
	_ = p.in.Close()
	timer := time.AfterFunc(soakPatience, p.kill)
	_ = p.cmd.Wait()
	timer.Stop()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// rings is the transport between the member processes.
func rings(name string) group.Transport { return group.Rings{Name: name} }

// processes runs each member in a process of its own: this program again, told its
// rank. Rank 0 prints.
func (s *settings) processes(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the others end with the first that fails
	name := fmt.Sprintf("spikes-%d", os.Getpid())
	complaints := &shared{w: stderr}
	ended := make(chan error, s.members) // one for each, so that none blocks
	for rank := range s.members {
		cmd := exec.CommandContext(ctx, self, append(args, "--rank", strconv.Itoa(rank), "--group", name)...)
		cmd.Stderr, cmd.WaitDelay = complaints, time.Second
		if rank == 0 {
			cmd.Stdout = stdout
		}
		if err := cmd.Start(); err != nil {
			cancel()
			ended <- err
			continue
		}
		go func() { ended <- cmd.Wait() }()
	}
	var errs []error
	for range s.members {
		if err := <-ended; err != nil {
			cancel()
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// shared is a writer for several processes.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

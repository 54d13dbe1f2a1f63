// Command torus shows a fabric at work: bulk data from node 0.0.0 of a torus of 16
// nodes to node 3.3.0 and back, every byte compared, while a link on the way is cut and
// mended; then four nfsim processes that are a torus over loopback sockets, with
// certificates, of which one has a client that does the same. Anything unexpected fails it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute) // a watchdog
	defer cancel()
	if err := errors.Join(oneProcess(ctx), fourProcesses(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "torus:", err)
		os.Exit(1)
	}
}

// again is the time between two looks at what changes.
const again = 2 * time.Millisecond

// until waits for something; what says for what.
func until(ctx context.Context, what string, ok func() (bool, error)) error {
	for {
		done, err := ok()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case <-time.After(again):
		}
	}
}

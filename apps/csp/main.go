// Command csp is the examples of Hoare's "Communicating Sequential Processes" (1978)
// across the boundary of a device: COPY, SQUASH, DISASSEMBLE and ASSEMBLE, the sieve
// of Eratosthenes, matrix multiplication, the dining philosophers. Some processes are
// goroutines, some are programs on the device, and none can tell where the others are.
//
//	go run ./apps/csp
//	go run ./apps/csp --on device sieve philosophers
//
// processes.go has the processes in Go, device/csp.c in C, each about as long as in
// the paper; network.go is what connects them. Exit codes: 0 verified, 1 failed, 2 bad
// input, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// settings is the command line.
type settings struct {
	address    string
	placements []placement
	size       int
	examples   []example
}

func main() { command.Main("csp", csp) }

func csp(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dev, err := nfcomms.Open(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	if err := load(ctx, dev); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "times of processes on the host and on a device that is %s\n", dev.Info().Kind())
	for _, e := range s.examples {
		var result string
		for _, place := range s.placements {
			start := time.Now()
			if result, err = e.run(ctx, dev, place, s.size); err != nil {
				return fmt.Errorf("%s on %s: %w", e.name, place, err)
			}
			fmt.Fprintf(stdout, "%-13s on %-7s %8.1f ms\n", e.name, place, float64(time.Since(start))/1e6)
		}
		fmt.Fprintf(stdout, "%-13s verified: %s\n", e.name, result)
	}
	_, err = fmt.Fprintf(stdout, "verified: %d of Hoare's networks did what the paper says, on %v\n", len(s.examples), s.placements)
	return err
}

// run runs one example and checks it.
func (e example) run(ctx context.Context, dev *nfcomms.Device, place placement, size int) (string, error) {
	n := &network{place: place}
	result := e.build(n, size)
	if err := n.run(ctx, dev); err != nil {
		return "", err
	}
	return result()
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	var on string
	f := command.Flags("csp")
	f.StringVar(&s.address, "address", "sim:", "device `address`")
	f.StringVar(&on, "on", "all", "`where` the processes run: host, device, both (in turn), or all three one after the other")
	f.IntVar(&s.size, "size", 2000, "`number` of characters, and below which the primes are")
	var names []string
	for _, e := range examples {
		names = append(names, e.name)
	}
	usage := "csp [flags] [NAME…]    Hoare's networks: " + strings.Join(names, ", ")
	if err := command.Parse(f, args, stderr, usage); err != nil {
		return s, err
	}
	all := []placement{onHost, onDevice, onBoth}
	switch {
	case on == "all":
		s.placements = all
	case slices.Contains(all, placement(on)):
		s.placements = []placement{placement(on)}
	default:
		return s, command.Inputf("--on %q is not host, device, both or all", on)
	}
	if s.size < 10 || s.size > 10000 {
		return s, command.Inputf("--size %d is not 10 to 10000", s.size)
	}
	for _, name := range f.Args() {
		i := slices.Index(names, name)
		if i < 0 {
			return s, command.Inputf("%q is none of %s", name, strings.Join(names, ", "))
		}
		s.examples = append(s.examples, examples[i])
	}
	if s.examples == nil {
		s.examples = examples
	}
	return s, nil
}

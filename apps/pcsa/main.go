// Command pcsa is the second application of the NFComms paper: how many different
// flows there are in a stream of packets, counted by probabilistic counting with
// stochastic averaging. Consumers on the device take batches of packets while it
// counts, in no order; a handler answers with the sum of trailing ones and the number
// of sketches, and the host divides. An exact map, a HyperLogLog library and the same
// sketches in Go are the peers.
//
//	go run ./apps/pcsa
//	go run ./apps/pcsa --seeds 50 --svg errors.svg
//	go run ./apps/pcsa --pcap FILE.pcap
//
// Without --pcap the traffic is synthetic, with another one for each seed. Exit codes:
// 0 verified, 1 failed, 2 bad input, 130 interrupted. README.md
// compares this program with the paper, and explains its figures.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// settings is the command line.
type settings struct {
	address, pcap, svg          string
	flows, packets, seeds, seed int
	consumers                   int
}

func main() { command.Main("pcsa", pcsa) }

func pcsa(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dev, err := nfcomms.Open(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	d, err := load(ctx, dev, s.consumers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	bar := command.NewBar(stderr, int64(s.seeds), "streams", false)
	defer bar.End()
	var runs []run
	for i := range s.seeds {
		r, err := count(ctx, d, func() (packets, error) { return s.open(s.seed + i) })
		if err != nil {
			return err
		}
		runs = append(runs, r)
		bar.Add(1)
	}
	bar.End()
	return s.report(stdout, d, runs)
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := command.Flags("pcsa")
	f.StringVar(&s.address, "address", "sim:", "device `address`")
	f.StringVar(&s.pcap, "pcap", "", "`file` of captured packets, pcap or pcapng, in place of synthetic ones")
	f.StringVar(&s.svg, "svg", "", "`file` for a picture of the errors, seed by seed")
	f.IntVar(&s.flows, "flows", 1_000_000, "`number` of flows in synthetic traffic")
	f.IntVar(&s.packets, "packets", 0, "`number` of packets in it; 0: five for every four flows")
	f.IntVar(&s.seeds, "seeds", 5, "`number` of streams, each with the next seed")
	f.IntVar(&s.seed, "seed", 1, "first `seed`")
	f.IntVar(&s.consumers, "consumers", 8, "`number` of consumers on the device")
	if err := command.Parse(f, args, stderr, "pcsa [flags]    how many different flows there are in packets"); err != nil {
		return s, err
	}
	if s.packets == 0 {
		s.packets = s.flows + s.flows/4
	}
	if s.pcap != "" {
		s.seeds = 1
	}
	switch {
	case s.flows < 1 || s.flows > 1<<28:
		return s, command.Inputf("--flows %d is not 1 to 2^28", s.flows)
	case s.packets < s.flows || s.packets > 1<<30:
		return s, command.Inputf("--packets %d is not %d, one for each flow, to 2^30", s.packets, s.flows)
	case s.seeds < 1 || s.seeds > 1000:
		return s, command.Inputf("--seeds %d is not 1 to 1000", s.seeds)
	case s.consumers < 1 || s.consumers > 1024:
		return s, command.Inputf("--consumers %d is not 1 to 1024", s.consumers)
	}
	return s, command.NoArguments(f)
}

// open begins a stream of packets.
func (s settings) open(seed int) (packets, error) {
	if s.pcap != "" {
		return openCapture(s.pcap)
	}
	return newTraffic(s.flows, s.packets, uint64(seed)), nil
}

// run is what all sides found in one stream.
type run struct {
	device timedCount
	answer answer
	peers  peers
}

// count has the device count a stream, and then the peers the same.
func count(ctx context.Context, d *device, open func() (packets, error)) (r run, err error) {
	for _, side := range []func(packets) error{
		func(p packets) (err error) { r.answer, r.device, err = d.count(ctx, p); return err },
		func(p packets) error { return r.peers.count(ctx, p) },
	} {
		p, err := open()
		if err != nil {
			return r, err
		}
		if err := errors.Join(side(p), p.Close()); err != nil {
			return r, err
		}
	}
	return r, nil
}

// report writes what was found and checks it.
func (s settings) report(w io.Writer, d *device, runs []run) error {
	first := runs[0]
	fmt.Fprintf(w, "%d packets with %d flows in a stream, %d without one; %d consumers, %d sketches; %s device\n\n",
		first.answer.Packets, first.peers.exact(), first.answer.Skipped, len(d.consumers), first.answer.Sketches, d.dev.Info().Kind())
	fmt.Fprintf(w, "                       flows     error   ns/packet\n")
	first.print(w)
	e := deviceErrors(runs)
	if len(runs) > 1 {
		fmt.Fprintf(w, "\nerror over %d seeds: %.2f %% (root of the mean square), %.2f %% at most; 0.78/√%d is %.2f %%\n",
			len(runs), 100*rms(e), 100*most(e), first.answer.Sketches, 100*theory(first.answer.Sketches))
	}
	if few := uint64(10 * sketches); first.peers.exact() < few {
		fmt.Fprintf(w, "\nwith fewer than %d flows, ten for a sketch, the estimate is too high\n", few)
	}
	if s.svg != "" {
		if err := os.WriteFile(s.svg, picture(runs), 0o644); err != nil {
			return command.InputError{Err: err}
		}
	}
	for i, r := range runs {
		if err := r.check(); err != nil {
			return fmt.Errorf("seed %d: %w", s.seed+i, err)
		}
	}
	if limit := allowed(len(runs)); first.peers.exact() >= 10*sketches && rms(e) > limit {
		return fmt.Errorf("the error is %.2f %%, which is over %.2f %%", 100*rms(e), 100*limit)
	}
	_, err := fmt.Fprintf(w, "\nverified: the device's sketches are those that Go computes, in all of %d streams\n", len(runs))
	return err
}

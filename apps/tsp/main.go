// Command tsp is the first application of the NFComms paper: the shortest round
// trip through cities, by 2-opt and random restarts. A manager and 59 climbers on
// the device share a queue and buffers in its memory; the host gives the cities by
// one transfer and gets the best tour. The same in plain goroutines is the peer:
// with the same seed both must find the same tour.
//
//	go run ./apps/tsp
//	go run ./apps/tsp --cities FILE.tsp --restarts 1000 --svg tour.svg
//
// Without --cities it uses cities.tsp, whose optimum data.py proves. Exit codes:
// 0 verified, 1 failed, 2 bad input, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// settings is the command line.
type settings struct {
	address, cities, svg string
	restarts, climbers   int
	seed                 uint64
}

func main() { command.Main("tsp", tsp) }

func tsp(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	m, err := readMap(s.cities)
	if err != nil {
		return err
	}
	dev, err := nfcomms.Open(ctx, s.address)
	if err != nil {
		return err
	}
	bar := command.NewBar(stderr, int64(s.restarts), "climbs", false)
	there, err := measured(func() (result, error) { return onDevice(ctx, dev, m.cities, s, bar.Add) })
	bar.End()
	if err = errors.Join(err, dev.Close()); err != nil {
		return err
	}
	if err := m.check(there.tour, there.length); err != nil {
		return fmt.Errorf("the device's tour: %w", err)
	}
	here, err := measured(func() (result, error) { return inGoroutines(ctx, m.cities, s) })
	if err != nil {
		return err
	}
	return report(stdout, s, m, dev.Info().Kind()+" device", there, here)
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := command.Flags("tsp")
	f.StringVar(&s.address, "address", "sim:?islands=5&managers=10", "device `address`; the paper's climbers are on five islands")
	f.StringVar(&s.cities, "cities", "", "`file` of cities: TSPLIB's NODE_COORD_SECTION, or a line \"x y\" for each")
	f.IntVar(&s.restarts, "restarts", 10000, "`number` of climbs, each from a random tour")
	f.IntVar(&s.climbers, "climbers", 59, "`number` of climbers on the device, and of goroutines")
	f.Uint64Var(&s.seed, "seed", 1, "`seed` of the random tours")
	f.StringVar(&s.svg, "svg", "", "`file` for a picture of the tour")
	if err := command.Parse(f, args, stderr, "tsp [flags]    the shortest round trip, on a device and in goroutines"); err != nil {
		return s, err
	}
	switch {
	case s.restarts < 1 || s.restarts > 1<<31:
		return s, command.Inputf("--restarts %d is not 1 to 2^31", s.restarts)
	case s.climbers < 1 || s.climbers > 1024:
		return s, command.Inputf("--climbers %d is not 1 to 1024", s.climbers)
	}
	return s, command.NoArguments(f)
}

// result is what one side found.
type result struct {
	tour             []city
	length, winner   uint64
	climbers, excess int
	local            int // climbers that copied the distances to memory of their own
	wall, cpu        time.Duration
}

// measured runs a side and adds what time it took.
func measured(side func() (result, error)) (result, error) {
	start, cpu := time.Now(), command.CPUTime()
	r, err := side()
	r.wall, r.cpu = time.Since(start), command.CPUTime()-cpu
	return r, err
}

// report compares the two sides and writes what they found.
func report(w io.Writer, s settings, m *cityMap, device string, there, here result) error {
	fmt.Fprintf(w, "%d cities, %d random restarts, seed %d\n", len(m.cities), s.restarts, s.seed)
	fmt.Fprintf(w, "shortest tour: %d, of climb %d%s\n\n", there.length, there.winner, m.compare(there.length))
	fmt.Fprintf(w, "                   climbers    wall s     CPU s   climbs/s\n")
	for _, side := range []struct {
		name string
		r    result
	}{{device, there}, {"goroutines", here}} {
		wall := side.r.wall.Seconds()
		fmt.Fprintf(w, "%-18s %8d %9.2f %9.2f %10.0f\n", side.name, side.r.climbers, wall, side.r.cpu.Seconds(), float64(s.restarts)/wall)
	}
	if there.climbers < s.climbers {
		fmt.Fprintf(w, "\nthe device has no room for more than %d climbers\n", there.climbers)
	}
	fmt.Fprintf(w, "\n%d climbers of the device copied the distances to memory of their own", there.local)
	fmt.Fprintf(w, "\n%d candidates came after the last that was needed, and were ignored\n", there.excess)
	if s.svg != "" {
		if err := os.WriteFile(s.svg, picture(there.tour, there.length), 0o644); err != nil {
			return command.InputError{Err: err}
		}
	}
	if here.length != there.length || here.winner != there.winner || !slices.Equal(here.tour, there.tour) {
		return fmt.Errorf("goroutines found another tour, of length %d, in climb %d", here.length, here.winner)
	}
	_, err := fmt.Fprintf(w, "verified: the tour visits each city once, is %d long, and goroutines found the same\n", there.length)
	return err
}

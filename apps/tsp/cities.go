package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/internal/command"
)

// Limits of device/tsp.c.
const (
	minCities, maxCities = 4, 1000
	maxCoordinate        = 1 << 29 // so that squares of distances fit
)

// city is a place as the device has it.
type city struct{ X, Y int32 }

// cityMap is what a file of cities holds.
type cityMap struct {
	cities  []city
	optimum uint64 // 0: not known
}

//go:embed cities.tsp
var hundred string

// readMap reads a file of cities, or the hundred that come with the program.
func readMap(path string) (*cityMap, error) {
	if path == "" {
		return parseMap("cities.tsp", strings.NewReader(hundred))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, command.InputError{Err: err}
	}
	defer f.Close()
	return parseMap(path, f)
}

// parseMap reads TSPLIB's format, of which only the coordinates and a comment
// "optimum N" matter, or lines of two numbers.
func parseMap(name string, r io.Reader) (*cityMap, error) {
	m := &cityMap{}
	lines := bufio.NewScanner(r)
	places, body := 2, true // a file may begin with coordinates
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		key, value, header := strings.Cut(line, ":")
		switch {
		case line == "" || line == "EOF":
		case line == "NODE_COORD_SECTION":
			places, body = 3, true
		case header:
			body = false
			if err := m.header(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
				return nil, command.Inputf("%s:%d: %w", name, n, err)
			}
		case !body:
			return nil, command.Inputf("%s:%d: %q stands before NODE_COORD_SECTION", name, n, line)
		default:
			c, err := parseCity(line, places)
			if err != nil {
				return nil, command.Inputf("%s:%d: %w", name, n, err)
			}
			m.cities = append(m.cities, c)
		}
		if len(m.cities) > maxCities {
			return nil, command.Inputf("%s has more than %d cities, which is all that the device takes", name, maxCities)
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, command.Inputf("%s: %w", name, err)
	case len(m.cities) < minCities:
		return nil, command.Inputf("%s has %d cities: a tour to improve needs %d", name, len(m.cities), minCities)
	}
	return m, nil
}

// header takes a line "KEY: value".
func (m *cityMap) header(key, value string) error {
	optimum, is := strings.CutPrefix(value, "optimum ")
	switch {
	case key == "COMMENT" && is:
		m.optimum, _ = strconv.ParseUint(optimum, 10, 64) // a comment in other words is a comment
	case key == "EDGE_WEIGHT_TYPE" && value != "EUC_2D":
		return fmt.Errorf("distances of type %s: only EUC_2D is known", value)
	}
	return nil
}

var errCity = errors.New("is no city: two whole numbers of at most 2^29")

// parseCity reads the coordinates, which are the last two of so many words.
func parseCity(line string, places int) (city, error) {
	words := strings.Fields(line)
	if len(words) != places {
		return city{}, fmt.Errorf("%q %w", line, errCity)
	}
	x, errX := strconv.ParseFloat(words[places-2], 64) // TSPLIB has 1.0e+2 as well
	y, errY := strconv.ParseFloat(words[places-1], 64)
	for _, v := range []float64{x, y} {
		if errX != nil || errY != nil || v != math.Trunc(v) || math.Abs(v) > maxCoordinate {
			return city{}, fmt.Errorf("%q %w", line, errCity)
		}
	}
	return city{int32(x), int32(y)}, nil
}

// distance is EUC_2D of TSPLIB, by integers as on the device.
func distance(a, b city) int32 {
	dx, dy := int64(a.X)-int64(b.X), int64(a.Y)-int64(b.Y)
	d := 4 * uint64(dx*dx+dy*dy)
	r := uint64(math.Sqrt(float64(d)))
	for r*r > d {
		r--
	}
	for (r+1)*(r+1) <= d {
		r++
	}
	return int32((r + 1) / 2)
}

// tourLength is the length of a round trip.
func tourLength(tour []city) (sum uint64) {
	for i, c := range tour {
		sum += uint64(distance(c, tour[(i+1)%len(tour)]))
	}
	return sum
}

// check finds out whether a tour visits every city once and is that long.
func (m *cityMap) check(tour []city, length uint64) error {
	order := func(a, b city) int {
		if a.X != b.X {
			return int(a.X) - int(b.X)
		}
		return int(a.Y) - int(b.Y)
	}
	if !slices.Equal(slices.SortedFunc(slices.Values(tour), order), slices.SortedFunc(slices.Values(m.cities), order)) {
		return errors.New("it does not visit each city once")
	}
	if l := tourLength(tour); l != length {
		return fmt.Errorf("its length is %d, not %d", l, length)
	}
	return nil
}

// compare returns how far a length is from the optimum, where that is known.
func (m *cityMap) compare(length uint64) string {
	switch {
	case m.optimum == 0:
		return ""
	case m.optimum == length:
		return ", which is the proved optimum"
	}
	return fmt.Sprintf(", %.2f %% over the proved optimum of %d", 100*(float64(length)/float64(m.optimum)-1), m.optimum)
}

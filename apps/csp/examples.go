package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// example builds a network of the paper with users that give it input and check
// what comes out. result says what was verified, once the network has run.
type example struct {
	name  string
	build func(n *network, size int) (result func() (string, error))
}

var examples = []example{
	{"copy", buildCopy}, {"squash", buildSquash}, {"reformat", buildReformat},
	{"sieve", buildSieve}, {"matrix", buildMatrix}, {"philosophers", buildPhilosophers},
}

// errWrong means that a network did not do what the paper says.
var errWrong = errors.New("what came out is wrong")

func wrong(got, want any) error { return fmt.Errorf("%w: %.200q, not %.200q", errWrong, got, want) }

// text is some of it, of n characters, with asterisks in it.
func text(n int) string {
	draw := rand.New(rand.NewPCG(1978, 8))
	var b strings.Builder
	for range n {
		b.WriteByte("abc **"[draw.IntN(6)])
	}
	return b.String()
}

// give is a user that gives a network its input.
func give[T any](n *network, c *channel[T], values []T) {
	n.user(func(ctx context.Context) error {
		for _, v := range values {
			if err := c.Send(ctx, v); err != nil {
				return err
			}
		}
		return nil
	}, out[T]{c})
}

// take is a user that takes what a network gives.
func take[T any](n *network, c *channel[T]) *[]T {
	var values []T
	n.user(func(ctx context.Context) error {
		return c.Each(ctx, func(v T) error {
			values = append(values, v)
			return nil
		})
	})
	return &values
}

// filter is an example of one process from west to east.
func filter(n *network, program, input string, host func(ctx context.Context, west, east *channel[byte]) error, want string) func() (string, error) {
	west, east := newChannel[byte](), newChannel[byte]()
	give(n, west, []byte(input))
	n.process(program, 0, ports{in[byte]{west}, out[byte]{east}}, func(ctx context.Context) error { return host(ctx, west, east) })
	got := take(n, east)
	return func() (string, error) {
		if string(*got) != want {
			return "", wrong(*got, want)
		}
		return fmt.Sprintf("%d characters in, %d out", len(input), len(want)), nil
	}
}

func buildCopy(n *network, size int) func() (string, error) {
	return filter(n, "copy", text(size), copies[byte], text(size))
}

func buildSquash(n *network, size int) func() (string, error) {
	return filter(n, "squash", text(size), squash, strings.ReplaceAll(text(size), "**", "^"))
}

// buildReformat is [west::DISASSEMBLE || X::COPY || east::ASSEMBLE] (3.5).
func buildReformat(n *network, size int) func() (string, error) {
	cards := make([]card, size/cardSize+1)
	var want strings.Builder
	for i := range cards {
		copy(cards[i][:], fmt.Sprintf("card %-75d", i))
		want.WriteString(string(cards[i][:]) + " ")
	}
	for want.Len()%lineSize != 0 {
		want.WriteByte(' ')
	}
	cardfile, x, y, lineprinter := newChannel[card](), newChannel[byte](), newChannel[byte](), newChannel[line]()
	give(n, cardfile, cards)
	n.process("disassemble", 0, ports{in[card]{cardfile}, out[byte]{x}}, func(ctx context.Context) error { return disassemble(ctx, cardfile, x) })
	n.process("copy", 0, ports{in[byte]{x}, out[byte]{y}}, func(ctx context.Context) error { return copies(ctx, x, y) })
	n.process("assemble", 0, ports{in[byte]{y}, out[line]{lineprinter}}, func(ctx context.Context) error { return assemble(ctx, y, lineprinter) })
	lines := take(n, lineprinter)
	return func() (string, error) {
		var got strings.Builder
		for _, l := range *lines {
			got.Write(l[:])
		}
		if got.String() != want.String() {
			return "", wrong(got.String(), want.String())
		}
		return fmt.Sprintf("%d cards in, %d lines out", len(cards), len(*lines)), nil
	}
}

// buildSieve finds the primes below size: a process for each odd one up to its root,
// and what comes through all of them.
func buildSieve(n *network, size int) func() (string, error) {
	var odd []uint64
	for m := uint64(3); m < uint64(size); m += 2 {
		odd = append(odd, m)
	}
	want := primes(size)
	stages := 0
	for stages < len(want)-1 && want[stages+1]*want[stages+1] < uint64(size) {
		stages++
	}
	chain, prints := channels[uint64](stages+1), channels[uint64](stages)
	give(n, chain[0], odd)
	found := []*[]uint64{{2}}
	for i := range stages {
		before, after, print := chain[i], chain[i+1], prints[i]
		n.process("sieve", 0, ports{in[uint64]{before}, out[uint64]{after}, out[uint64]{print}},
			func(ctx context.Context) error { return sieve(ctx, before, after, print) })
		found = append(found, take(n, print))
	}
	found = append(found, take(n, chain[stages]))
	return func() (string, error) {
		var got []uint64
		for _, f := range found {
			got = append(got, *f...)
		}
		if !slices.Equal(got, want) {
			return "", wrong(got, want)
		}
		return fmt.Sprintf("%d primes below %d, by %d sieves", len(got), size, stages), nil
	}
}

// primes is what the sieve should find, by division.
func primes(below int) (list []uint64) {
	for m := uint64(2); m < uint64(below); m++ {
		if !slices.ContainsFunc(list, func(p uint64) bool { return m%p == 0 }) {
			list = append(list, m)
		}
	}
	return list
}

// buildMatrix multiplies a stream of vectors with a matrix of 3 × 3, each of whose
// elements is a process with four neighbours.
func buildMatrix(n *network, size int) func() (string, error) {
	const side = 3
	vectors := size/100 + 1
	value := func(i, j int) int64 { return int64(i*7+j*5)%13 - 6 }
	var across, down [side + 1][side + 1]*channel[int64] // west of (i, j), north of (i, j)
	for i := range side + 1 {
		for j := range side + 1 {
			across[i][j], down[i][j] = newChannel[int64](), newChannel[int64]()
		}
	}
	for i := range side {
		var input []int64
		for v := range vectors {
			input = append(input, value(v, i+50))
		}
		give(n, across[i][0], input)
		give(n, down[0][i], make([]int64, vectors)) // zeros from the north
		take(n, across[i][side])
	}
	for i := range side {
		for j := range side {
			a, west, east, north, south := value(i, j), across[i][j], across[i][j+1], down[i][j], down[i+1][j]
			n.process("multiply", uint64(a), ports{in[int64]{west}, out[int64]{east}, in[int64]{north}, out[int64]{south}},
				func(ctx context.Context) error { return multiply(ctx, a, west, east, north, south) })
		}
	}
	var columns []*[]int64
	for j := range side {
		columns = append(columns, take(n, down[side][j]))
	}
	return func() (string, error) {
		for j, column := range columns {
			want := make([]int64, vectors)
			for v := range vectors {
				for i := range side {
					want[v] += value(v, i+50) * value(i, j)
				}
			}
			if !slices.Equal(*column, want) {
				return "", wrong(*column, want)
			}
		}
		return fmt.Sprintf("%d vectors times a matrix of %d × %d", vectors, side, side), nil
	}
}

// table sees the philosophers eat. It is one process, so that it sees one put down
// its forks before another eats with them.
type table struct {
	eating [seats]bool
	meals  [seats]int
}

// watch is told by each philosopher when it begins to eat, and when it has eaten.
func (t *table) watch(ctx context.Context, phil []*channel[byte]) error {
	seat := map[*channel[byte]]int{}
	for i, c := range phil {
		seat[c] = i
	}
	for len(phil) > 0 {
		i, _, err := alternative(ctx, phil...)
		switch {
		case err == io.EOF:
			phil = slices.Concat(phil[:i], phil[i+1:])
		case err != nil:
			return err
		default:
			if err := t.toggle(seat[phil[i]]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *table) toggle(i int) error {
	if t.eating[i] = !t.eating[i]; !t.eating[i] {
		t.meals[i]++
		return nil
	}
	if t.eating[(i+1)%seats] || t.eating[(i+seats-1)%seats] {
		return fmt.Errorf("%w: philosopher %d eats with a fork that a neighbour has", errWrong, i)
	}
	return nil
}

// buildPhilosophers is [ROOM || FORK(0..4) || PHIL(0..4)] (5.3).
func buildPhilosophers(n *network, size int) func() (string, error) {
	meals := size/100 + 1
	rooms, left, right, tables := channels[byte](seats), channels[byte](seats), channels[byte](seats), channels[byte](seats)
	var enter ports
	for _, c := range rooms {
		enter = append(enter, in[byte]{c})
	}
	n.process("room", 0, enter, func(ctx context.Context) error { return room(ctx, rooms...) })
	var t table
	for i := range seats {
		mine, other := left[i], right[(i+seats-1)%seats] // fork i is the right one of the philosopher before
		n.process("fork", 0, ports{in[byte]{mine}, in[byte]{other}}, func(ctx context.Context) error { return fork(ctx, mine, other) })
	}
	for i := range seats {
		n.process("philosopher", uint64(meals), ports{out[byte]{rooms[i]}, out[byte]{left[i]}, out[byte]{right[i]}, out[byte]{tables[i]}},
			func(ctx context.Context) error {
				return philosopher(ctx, meals, rooms[i], left[i], right[i], tables[i])
			})
	}
	n.user(func(ctx context.Context) error { return t.watch(ctx, tables) })
	return func() (string, error) {
		for i, ate := range t.meals {
			if ate != meals {
				return "", fmt.Errorf("%w: philosopher %d ate %d times, not %d", errWrong, i, ate, meals)
			}
		}
		return fmt.Sprintf("%d philosophers ate %d times, no neighbours at once", seats, meals), nil
	}
}

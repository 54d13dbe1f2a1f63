package group

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// exchanger is an algorithm at one member: how the packages of a step get to
// where they belong. Exchange gives the frames for s.Targets away, which Out has
// the bytes for, and calls s.Deliver for a frame of each of s.Sources; it returns
// what the methods of s return. It keeps its state between the steps of an epoch.
type exchanger interface {
	// Exchange runs one step.
	Exchange(s *exchangeStep) error
}

// exchangerFunc is an exchanger without state.
type exchangerFunc func(s *exchangeStep) error

// Exchange calls f.
func (f exchangerFunc) Exchange(s *exchangeStep) error { return f(s) }

// Algorithm is an entry of the registry.
type Algorithm struct {
	// Name is the value of Options.Algorithm.
	Name string
	// Number is that of the MUSIC report, "" if it has none.
	Number string
	// A description in one line.
	What string
	// Process: Options.Handler is called with each package as it arrives.
	Process bool
	// start makes what runs it at one member.
	start func() exchanger
}

var registry struct {
	sync.Mutex
	all []Algorithm
}

// register adds an algorithm. It panics if its name is taken: that is a fault of
// the program.
func register(a Algorithm) {
	registry.Lock()
	defer registry.Unlock()
	for _, b := range registry.all {
		if b.Name == a.Name {
			panic("group: algorithm " + a.Name + " is registered twice")
		}
	}
	registry.all = append(registry.all, a)
}

// Algorithms lists all that are registered, in that order.
func Algorithms() []Algorithm {
	registry.Lock()
	defer registry.Unlock()
	return slices.Clone(registry.all)
}

func find(name string) (Algorithm, error) {
	var names []string
	for _, a := range Algorithms() {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Algorithm{}, fmt.Errorf("%w: algorithm %q is none of %s", ErrOptions, name, strings.Join(names, ", "))
}

func stateless(f func(s *exchangeStep) error) func() exchanger {
	return func() exchanger { return exchangerFunc(f) }
}

func init() {
	for _, a := range []Algorithm{
		{Auto, "", "chooses among send, isend-irecv, cpex, bruck and allgather by model and measurement", false, newAuto},
		{"allgather", "0", "sizes to all, then all data to all", false, stateless(allgather)},
		{"allgather-l", "1", "allgather, with a handler", true, stateless(allgather)},
		{"isend", "2", "starts all frames, then takes what arrives", false, stateless(isend)},
		{"ssend", "3", "a rendezvous with each target in turn", false, stateless(ssend)},
		{"isend-l", "4", "isend, with a handler", true, stateless(isend)},
		{"send", "5", "sends to each target in turn, then takes what arrives", false, stateless(send)},
		{"send-loop", "6", "sends to each target in turn, then hears each source in turn", false, stateless(sendLoop)},
		{"fixed-buffer", "7", "a fixed buffer of each to all, then what it did not hold", false, stateless(fixedBuffer)},
		{"chunks", "8", "sizes to all, then chunks of all to all", false, stateless(chunks)},
		{"isend-irecv", "Mod #3", "posts all receives, starts all frames, waits for any to complete", false, func() exchanger { return new(waitAny) }},
		{"cpex", "CPEX", "one partner at a time, in rounds", false, stateless(cpex)},
		{"bruck", "", "log n rounds, packages travel together over several members", false, func() exchanger { return new(bruck) }},
	} {
		register(a)
	}
}

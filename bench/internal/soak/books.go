//go:build linux

package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

// Books are what a soak has come to, over all of its runs.
type Books struct {
	Address    string            `json:"address"`
	Seed       uint64            `json:"seed"`
	Rounds     uint64            `json:"rounds"`
	Seconds    float64           `json:"seconds"`
	Operations uint64            `json:"operations"`
	Bytes      uint64            `json:"bytes"`
	Faults     map[string]uint64 `json:"faults"`
	// Noticed is how long those took who exchanged with a node that was killed, by fault.
	Noticed map[string]Noticed `json:"noticed,omitempty"`
	// Losses counts what one side handed over and the other did not get, Wrong
	// what came changed, twice or in another order, and ends that should not be.
	Losses uint64 `json:"losses"`
	Wrong  uint64 `json:"wrong"`
	// First is what the first of them was.
	First string `json:"first,omitempty"`
	// Stopped is why the last run ended, and where.
	Stopped string `json:"stopped"`
}

// Noticed is in how long losses were noticed, in milliseconds.
type Noticed struct {
	Losses uint64  `json:"losses"`
	MeanMs float64 `json:"mean_ms"`
	MostMs float64 `json:"most_ms"`
}

// load reads the books of earlier runs.
func (o *options) load(address string) (Books, error) {
	b := Books{Address: address, Seed: o.seed, Faults: make(map[string]uint64)}
	if o.state == "" {
		return b, nil
	}
	text, err := os.ReadFile(o.state)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	var old Books
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	switch {
	case err != nil:
		return b, cli.UsageError{Err: fmt.Errorf("read books of %s: %w", o.state, err)}
	case old.Address != address:
		return b, cli.Usagef("--state %s has the books of %s, not of %s", o.state, old.Address, address)
	case old.Faults == nil:
		old.Faults = b.Faults
	}
	return old, nil
}

// save writes the books; a crash leaves the old ones or the new.
func (o *options) save(b *Books) error {
	if o.state == "" {
		return nil
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := cli.Replace(o.state, append(text, '\n')); err != nil {
		return cli.UsageError{Err: fmt.Errorf("write books: %w", err)}
	}
	return nil
}

// fault books an injected fault.
func (b *Books) fault(what string) { b.Faults[what]++ }

// count books n of what happened.
func (b *Books) count(what string, n uint64) {
	if n > 0 {
		b.Faults[what] += n
	}
}

// noticed books that a loss was.
func (b *Books) noticed(fault string, took time.Duration) {
	if b.Noticed == nil {
		b.Noticed = make(map[string]Noticed)
	}
	n, ms := b.Noticed[fault], took.Seconds()*1e3
	n.Losses++
	n.MeanMs += (ms - n.MeanMs) / float64(n.Losses)
	n.MostMs = max(n.MostMs, ms)
	b.Noticed[fault] = n
}

// wrong books what should not be.
func (b *Books) wrong(format string, args ...any) {
	b.Wrong++
	if b.First == "" {
		b.First = fmt.Sprintf(format, args...)
	}
}

// lost books n operations that one side did not get.
func (b *Books) lost(n uint64, what string) {
	b.Losses += n
	if n > 0 && b.First == "" {
		b.First = fmt.Sprintf("%d %s lost", n, what)
	}
}

// add books what a side exchanged.
func (b *Books) add(end soakEnd) {
	b.Operations += end.Operations
	b.Bytes += end.Bytes
}

// ended books an end that should not be: what was wrong, or none of the reasons that may be. It
// returns whether the end was as it should be.
func (b *Books) ended(side string, end soakEnd, err error, reasons ...string) bool {
	switch {
	case err != nil:
		b.wrong("%s: %v", side, err)
	case end.Wrong != "":
		b.wrong("%s: %s", side, end.Wrong)
	case !slices.Contains(reasons, end.Why):
		b.wrong("%s: %s, not %s", side, end.Why, strings.Join(reasons, " or "))
	default:
		return true
	}
	return false
}

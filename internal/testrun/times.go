package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// slowest is how many of each kind the report names.
const slowest = 12

// times holds how long suites, packages and tests took.
type times struct {
	mu  sync.Mutex
	all map[string][]timed // by kind
}

// timed is one of them.
type timed struct {
	name  string
	spent time.Duration
}

// add notes one that ended.
func (t *times) add(kind, name string, spent time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[string][]timed)
	}
	t.all[kind] = append(t.all[kind], timed{strings.TrimPrefix(name, module), spent})
}

// report prints the slowest of each kind. Packages in two lanes, or two packages at once, share the
// processors, so that the times add up to more than passed.
func (t *times) report(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range []string{"suite", "package", "test"} {
		list := t.all[kind]
		slices.SortStableFunc(list, func(a, b timed) int { return cmp.Compare(b.spent, a.spent) })
		if len(list) > slowest && kind != "suite" {
			list = list[:slowest]
		}
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(w, "== slowest %ss\n", kind)
		for _, e := range list {
			fmt.Fprintf(w, "%8.1f s  %s\n", e.spent.Seconds(), e.name)
		}
	}
	fmt.Fprintln(w)
}

// seconds converts what go test -json reports.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

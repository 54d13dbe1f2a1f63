package surge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tally is what was counted of one kind.
type Tally struct {
	// Count is how often it happened.
	Count int
	// Bytes is the sum of the sizes.
	Bytes int
}

// Limiter passes the events of each key one by one, up to a burst within a window. Events beyond
// it are counted, and reported once a window for as long as they continue: the next burst is
// allowed after a window without an event. So a key makes a bounded number of lines whatever it
// does. All methods are safe for concurrent use.
type Limiter[K comparable] struct {
	burst  int
	window time.Duration
	report func(key K, held map[string]Tally)

	mu     sync.Mutex
	surges map[K]*surge
}

// surge is what happened of a key since its window began.
type surge struct {
	passed int
	held   map[string]Tally
	timer  *time.Timer
}

// New returns a limiter. report gets what was counted, by kind; it is called from
// a goroutine of a timer, and by Flush.
func New[K comparable](burst int, window time.Duration, report func(key K, held map[string]Tally)) *Limiter[K] {
	return &Limiter[K]{burst: burst, window: window, report: report, surges: make(map[K]*surge)}
}

// Pass reports whether something of a kind and size is to be reported. It counts it
// if not.
func (l *Limiter[K]) Pass(key K, kind string, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.surges[key]
	if s == nil {
		s = &surge{held: make(map[string]Tally)}
		s.timer = time.AfterFunc(l.window, func() { l.end(key, s) })
		l.surges[key] = s
	}
	if s.passed < l.burst {
		s.passed++
		return true
	}
	t := s.held[kind]
	s.held[kind] = Tally{t.Count + 1, t.Bytes + size}
	return false
}

// end ends the window of a surge, and begins another if it continues.
func (l *Limiter[K]) end(key K, s *surge) {
	l.mu.Lock()
	held := s.held
	switch {
	case l.surges[key] != s: // it was flushed
		held = nil
	case len(held) == 0:
		delete(l.surges, key)
	default:
		s.held = make(map[string]Tally)
		s.timer.Reset(l.window)
	}
	l.mu.Unlock()
	if len(held) > 0 {
		l.report(key, held)
	}
}

// Flush reports what was counted until now, and forgets all surges.
func (l *Limiter[K]) Flush() {
	l.mu.Lock()
	all := l.surges
	l.surges = make(map[K]*surge)
	for _, s := range all {
		s.timer.Stop()
	}
	l.mu.Unlock()
	for key, s := range all {
		if len(s.held) > 0 {
			l.report(key, s.held)
		}
	}
}

// Text returns "12 more: 10 opened, 2 closed", the most frequent first, and
// the sum of the sizes if there are any.
func Text(held map[string]Tally) string {
	kinds := slices.Collect(maps.Keys(held))
	slices.SortFunc(kinds, func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b].Count, held[a].Count), strings.Compare(a, b))
	})
	var sum Tally
	var parts []string
	for _, kind := range kinds {
		t := held[kind]
		sum = Tally{sum.Count + t.Count, sum.Bytes + t.Bytes}
		parts = append(parts, fmt.Sprintf("%d %s", t.Count, kind))
	}
	text := fmt.Sprintf("%d more: %s", sum.Count, strings.Join(parts, ", "))
	if sum.Bytes > 0 {
		text += fmt.Sprintf("; %d bytes", sum.Bytes)
	}
	return text
}

package bridgetest

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	// Go and libc start threads and map memory when they like and keep them.
	// Both are bounded, and a leak is not.
	threadSlack  = 24
	mappingSlack = 2 << 30 // bytes
)

// census counts what a process holds.
type census struct {
	fds     []string // what each descriptor refers to
	named   []string // mappings that are backed by a file or have a name
	threads int
	mapped  uint64 // bytes that may be accessed
}

// first is the census before the first checked test; threads and anonymous
// memory are compared with it, because a little of both is never given back.
var first = sync.OnceValue(func() census {
	warmUp()
	return takeCensus()
})

// LeakCheck fails the test if, after its other clean-ups ran, the process holds goroutines, file
// descriptors or named mappings it did not hold before. It also fails if threads or mapped memory
// keep growing from test to test. Call it first; the test must not be parallel.
func LeakCheck(t testing.TB) {
	t.Helper()
	base := first()
	before, running := takeCensus(), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		var left error
		var found []string
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if left = goleak.Find(running); left == nil {
				if found = takeCensus().over(before, base); found == nil {
					return
				}
			}
		}
		if left != nil {
			t.Errorf("goroutines left behind: %v", left)
			return
		}
		t.Errorf("left behind: %s", strings.Join(found, "; "))
	})
}

// over names what c holds more than before, or too much more than base.
func (c census) over(before, base census) (found []string) {
	if d := extra(c.fds, before.fds); d != "" {
		found = append(found, "descriptors "+d)
	}
	if d := extra(c.named, before.named); d != "" {
		found = append(found, "mappings "+d)
	}
	if c.threads > base.threads+threadSlack {
		found = append(found, fmt.Sprintf("%d threads, %d at first", c.threads, base.threads))
	}
	if !RaceEnabled && c.mapped > base.mapped+mappingSlack {
		found = append(found, fmt.Sprintf("%d MiB mapped, %d at first", c.mapped>>20, base.mapped>>20))
	}
	return found
}

// extra lists what now has more often than before.
func extra(now, before []string) string {
	count := make(map[string]int)
	for _, s := range before {
		count[s]++
	}
	var found []string
	for _, s := range now {
		if count[s]--; count[s] < 0 {
			found = append(found, s)
		}
	}
	return strings.Join(found, ", ")
}

// warmUp makes the runtime open what it opens once.
func warmUp() {
	if r, w, err := os.Pipe(); err == nil {
		_ = r.SetReadDeadline(time.Now())
		_, _ = r.Read(make([]byte, 1))
		_, _ = r.Close(), w.Close()
	}
	runtime.GC()
}

func takeCensus() census {
	var c census
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		for _, e := range entries {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
				c.fds = append(c.fds, describe(to))
			}
		}
	}
	sort.Strings(c.fds)
	c.threads = threads()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return c
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		c.addMapping(strings.Fields(lines.Text()))
	}
	return c
}

// describe removes inode numbers, which differ for like descriptors.
func describe(s string) string {
	s, _, _ = strings.Cut(s, ":[")
	return s
}

// addMapping counts one line of /proc/self/maps.
func (c *census) addMapping(f []string) {
	if len(f) < 2 {
		return
	}
	from, to, _ := strings.Cut(f[0], "-")
	a, _ := strconv.ParseUint(from, 16, 64)
	b, _ := strconv.ParseUint(to, 16, 64)
	if !strings.HasPrefix(f[1], "---") { // what Go and libc, for the heap of a thread, only reserve
		c.mapped += b - a
	}
	if len(f) < 6 || strings.HasPrefix(f[5], "[") {
		return
	}
	if strings.Contains(f[5], ".so") {
		return // libc opens some on demand and keeps them
	}
	c.named = append(c.named, f[5])
}

// threads counts the threads of this process.
func threads() int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	return len(entries)
}

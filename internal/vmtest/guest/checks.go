//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// pinPatience is how long pages may stay pinned after the last program ended:
// what a killed process had open is closed a little later.
const pinPatience = time.Minute

// checkPins compares the pages ever pinned with those released.
func checkPins() error {
	deadline := time.Now().Add(pinPatience)
	for {
		// The counters are per processor; this adds them up. A kernel for one
		// processor has no such file and needs none.
		err := os.WriteFile("/proc/sys/vm/stat_refresh", []byte("1"), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("refresh counters: %w", err)
		}
		acquired, released, err := pins()
		if err != nil {
			return err
		}
		if acquired == released {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d pages still pinned: nr_foll_pin_acquired %d, nr_foll_pin_released %d", acquired-released, acquired, released)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// pins reads the kernel's counters of pinned and released pages.
func pins() (acquired, released int64, err error) {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0, 0, err
	}
	acquired, err1 := counter(string(text), "nr_foll_pin_acquired")
	released, err2 := counter(string(text), "nr_foll_pin_released")
	return acquired, released, errors.Join(err1, err2)
}

// counter finds the line "name value".
func counter(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("no counter %s", name)
}

// taintWarned is the bit of a warning, which a job may allow.
const taintWarned = 9

// Bits of /proc/sys/kernel/tainted that nothing but a kernel bug sets.
var taints = map[uint]string{
	4: "machine check", 5: "bad page or KASAN report", 7: "oops", taintWarned: "warning", 14: "soft lockup",
}

// checkTaint asks the kernel itself whether it complained, in case the log lost
// lines.
func checkTaint(warns bool) error {
	text, err := os.ReadFile("/proc/sys/kernel/tainted")
	if err != nil {
		return err
	}
	bits, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return fmt.Errorf("read taint: %w", err)
	}
	for bit, what := range taints {
		if bits&(1<<bit) != 0 && !(warns && bit == taintWarned) {
			err = errors.Join(err, fmt.Errorf("the kernel is tainted by a %s (%d)", what, bits))
		}
	}
	return err
}

const kmemleak = "/sys/kernel/debug/kmemleak"

// leakAge is what memory must have been lost for, at least, to be reported.
const leakAge = 6 * time.Second

// scanKmemleak looks for memory that nothing points to, twice: what changed
// between two scans is not reported.
func scanKmemleak() error {
	for range 2 {
		time.Sleep(leakAge)
		if err := os.WriteFile(kmemleak, []byte("scan"), 0); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
	}
	text, err := os.ReadFile(kmemleak)
	if err != nil {
		return fmt.Errorf("read leaks: %w", err)
	}
	if len(text) > 0 {
		return fmt.Errorf("leaked memory:\n%s", text)
	}
	return nil
}

// sendCoverage sends the counters of everything compiled with gcov.
func (g *guest) sendCoverage() error {
	found := 0
	err := filepath.WalkDir("/sys/kernel/debug/gcov", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".gcda") {
			return err
		}
		data, err := readAll(name)
		if err != nil {
			return err
		}
		found++
		g.send(wire.Frame{Kind: wire.File, Program: wire.Job, Name: name, Data: data})
		return nil
	})
	if err == nil && found == 0 {
		err = errors.New("no file was compiled with gcov")
	}
	return err
}

// readAll reads a file that says it is empty.
func readAll(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// minCoverage is the share of the module's lines, in percent, that a group of
// jobs with coverage must run.
const minCoverage = 90

// lineCounts is how often each line of a file ran.
type lineCounts map[string]map[int]int64

// coverage adds up what the jobs' guests counted and prints it by file. Of a
// whole group it makes a test.
func (w *workshop) coverage(ctx context.Context, s *stream, ran []job, whole bool) error {
	total := make(lineCounts)
	for _, j := range ran {
		if err := w.addCoverage(ctx, total, filepath.Join(w.out, "log", j.name, "files")); err != nil {
			return err
		}
	}
	if len(total) == 0 {
		return nil
	}
	table, percent := total.table()
	if whole {
		u := newSuite(s, "vm/coverage")
		u.outcome("module", table, passOrFail(percent >= minCoverage))
		u.end()
	}
	fmt.Fprint(os.Stderr, table)
	return nil
}

// addCoverage reads the counters below a folder. A kernel names each file after
// the object it was compiled to; the notes of the compiler are beside that.
func (w *workshop) addCoverage(ctx context.Context, total lineCounts, folder string) error {
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".gcda" {
			return err
		}
		_, object, ok := strings.Cut(name, "/sys/kernel/debug/gcov")
		if !ok {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(object, data, 0o644); err != nil {
			return fmt.Errorf("put counters beside their notes: %w", err)
		}
		text, err := w.command(ctx, nil, "gcov", "--json-format", "--stdout", "--object-directory", filepath.Dir(object), object)
		if err != nil {
			return err
		}
		return total.add([]byte(text))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no coverage in this job
	}
	return err
}

// add reads gcov's report of one object file.
func (c lineCounts) add(text []byte) error {
	var report struct {
		Files []struct {
			File  string
			Lines []struct {
				Number int   `json:"line_number"`
				Count  int64 `json:"count"`
			}
		}
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&report); err != nil {
		return fmt.Errorf("read gcov's report: %w", err)
	}
	for _, f := range report.Files {
		name := filepath.Base(f.File)
		if !strings.Contains(f.File, "/kmod/") && filepath.IsAbs(f.File) {
			continue // inline functions of the kernel's headers
		}
		if c[name] == nil {
			c[name] = make(map[int]int64)
		}
		for _, l := range f.Lines {
			c[name][l.Number] += l.Count
		}
	}
	return nil
}

// table returns the share of lines that ran, by file and in all (percent).
func (c lineCounts) table() (text string, percent float64) {
	var b strings.Builder
	var names []string
	for name := range c {
		names = append(names, name)
	}
	slices.Sort(names)
	ran, all := 0, 0
	for _, name := range names {
		n := 0
		var missing []string
		for line, count := range c[name] {
			if count > 0 {
				n++
			} else {
				missing = append(missing, fmt.Sprintf("%6d", line))
			}
		}
		slices.Sort(missing)
		fmt.Fprintf(&b, "coverage %-24s %5.1f %% of %4d lines; not run:%s\n", name,
			share(n, len(c[name])), len(c[name]), short(missing))
		ran, all = ran+n, all+len(c[name])
	}
	percent = share(ran, all)
	fmt.Fprintf(&b, "coverage %-24s %5.1f %% of %4d lines\n", "module", percent, all)
	return b.String(), percent
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// short joins line numbers, at most some of them.
func short(numbers []string) string {
	const most = 30
	var b strings.Builder
	for _, n := range numbers[:min(len(numbers), most)] {
		b.WriteString(" " + strings.TrimSpace(n))
	}
	if len(numbers) > most {
		fmt.Fprintf(&b, " and %d more", len(numbers)-most)
	}
	return b.String()
}

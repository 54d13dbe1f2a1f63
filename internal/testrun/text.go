package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// eachLine calls f for every line of r, however long, without its end.
func eachLine(r io.Reader, f func(string)) {
	b := bufio.NewReader(r)
	for {
		text, err := b.ReadString('\n')
		if text != "" {
			f(strings.TrimSuffix(text, "\n"))
		}
		if err != nil {
			return
		}
	}
}

// stepReader shows the output and counts the exit status as one test.
type stepReader struct {
	w io.Writer
}

func (r *stepReader) line(text string) { fmt.Fprintln(r.w, text) }

func (r *stepReader) end(err error) counts {
	if err != nil {
		fmt.Fprintln(r.w, "FAIL:", err)
		return counts{failed: 1}
	}
	return counts{passed: 1}
}

var sumLine = regexp.MustCompile(`^(?:.*: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$`)

// sumReader shows the output and adds up the summaries in it.
type sumReader struct {
	w     io.Writer
	total counts
	lines int
}

func (r *sumReader) line(text string) {
	fmt.Fprintln(r.w, text)
	m := sumLine.FindStringSubmatch(text)
	if m == nil {
		return
	}
	r.lines++
	r.total.add(counts{number(m[1]), number(m[2]), number(m[3])})
}

// number converts digits; the absent skip count is 0.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// end counts one more failure when the command failed without saying so, or
// said nothing that could be counted. Skips are failures: C tests have no list.
func (r *sumReader) end(err error) counts {
	c := r.total
	c.failed, c.skipped = c.failed+c.skipped, 0
	switch {
	case err != nil && c.failed == 0:
		fmt.Fprintln(r.w, "FAIL:", err)
		c.failed++
	case r.lines == 0:
		fmt.Fprintln(r.w, "FAIL: no line \"N passed, N failed\" in the output")
		c.failed++
	}
	return c
}

// skipList holds the tests that may be skipped, by package.
type skipList map[string][]string

// readSkips reads lines "PACKAGE TEST REASON"; "#" starts a comment.
func readSkips(name string) (skipList, error) {
	allowed := make(skipList)
	if name == "" {
		return allowed, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read skips: %w", err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case len(fields) < 3:
			return nil, fmt.Errorf("%s:%d: want PACKAGE TEST REASON", name, i+1)
		default:
			allowed[fields[0]] = append(allowed[fields[0]], fields[1])
		}
	}
	return allowed, nil
}

// has reports whether a test may be skipped.
func (l skipList) has(pkg, test string) bool {
	for _, pattern := range l[pkg] {
		prefix, wild := strings.CutSuffix(pattern, "*")
		if pattern == test || wild && strings.HasPrefix(test, prefix) {
			return true
		}
	}
	return false
}

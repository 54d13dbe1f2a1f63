//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcomes lists the ends of tests and packages in a stream, "package test result".
func outcomes(t *testing.T, text []byte) []string {
	t.Helper()
	var list []string
	for line := range bytes.Lines(text) {
		var e event
		require.NoError(t, json.Unmarshal(line, &e), string(line))
		require.False(t, e.Time.IsZero(), string(line))
		switch e.Action {
		case "pass", "fail", "skip":
			list = append(list, strings.Join(strings.Fields(e.Package+" "+e.Test+" "+e.Action), " "))
		}
	}
	return list
}

// outputOf joins what a test, or a package, wrote.
func outputOf(text []byte, test string) string {
	var b strings.Builder
	for line := range bytes.Lines(text) {
		var e event
		if json.Unmarshal(line, &e) == nil && e.Test == test {
			b.WriteString(e.Output)
		}
	}
	return b.String()
}

func TestResults(t *testing.T) {
	const passing = "\x16=== RUN   TestA\n\x16--- PASS: TestA (0.01s)\n"
	for _, c := range []struct {
		name    string
		kind    kind
		text    string
		trouble string
		want    string // separated by "; "
		says    string // somewhere in the output
	}{
		{"go", goTest, passing + "\x16PASS\n", "", "p TestA pass; p pass", "PASS: TestA"},
		{"go fails", goTest, "\x16=== RUN   TestA\n    a_test.go:1: reason\n\x16--- FAIL: TestA (0.01s)\n\x16FAIL\n", "exit status 1", "p TestA fail; p fail", "reason"},
		{"go skips", goTest, "\x16=== RUN   TestA\n\x16--- SKIP: TestA (0.01s)\n\x16PASS\n", "", "p TestA skip; p pass", ""},
		{"go crashes", goTest, passing + "\x16=== RUN   TestB\npanic: boom\n", "exit status 2", "p TestA pass; p fail", "panic: boom"},
		{"go leaks", goTest, passing + "\x16PASS\nleaked goroutines\n", "exit status 1", "p TestA pass; p fail", "exit status 1"},
		{"go is killed", goTest, passing, "killed", "p TestA pass; p fail", "killed"},
		{"go ends early", goTest, passing, "", "p fail", "ended before its tests"},
		{"c", cTest, "a.c:1: a note\nok one\nok two\n2 passed, 0 failed\n", "", "p one pass; p two pass; p pass", "a note"},
		{"c fails", cTest, "a.c:1: not true: x\nFAIL one\nok two\n", "exit status 1", "p one fail; p two pass; p fail", "not true: x"},
		{"c crashes", cTest, "ok one\nhalf a li", "signal: segmentation fault", "p one pass; p exit fail; p fail", "half a li"},
		{"c runs nothing", cTest, "0 passed, 0 failed\n", "", "p exit fail; p fail", "no test ran"},
		{"c command", cMain, "equal\n", "", "p run pass; p pass", "equal"},
		{"plain", goMain, "moved\n", "", "p run pass; p pass", "moved"},
		{"plain fails", goMain, "cannot\n", "exit status 3", "p run fail; p fail", "cannot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			s := &stream{w: &b}
			r, err := newResults(s, c.kind, "p")
			require.NoError(t, err)
			for i := range len(c.text) {
				_, err := r.Write([]byte{c.text[i]}) // a serial port cuts where it likes
				require.NoError(t, err)
			}
			r.end(c.trouble)
			require.Equal(t, c.want, strings.Join(outcomes(t, b.Bytes()), "; "))
			require.Contains(t, b.String(), strings.ReplaceAll(c.says, "\"", "\\\""))
			require.Equal(t, strings.Contains(c.want, "fail"), s.failed())
		})
	}
}

// TestCasesHaveTimes: a case took all the time since the one before it.
func TestCasesHaveTimes(t *testing.T) {
	var b bytes.Buffer
	u := newSuite(&stream{w: &b}, "p")
	r := &cResults{suite: u, last: u.began.Add(-2 * time.Second)}
	r.line("ok one")
	r.last = r.last.Add(-time.Hour)
	r.line("FAIL two")
	var took []float64
	for line := range bytes.Lines(b.Bytes()) {
		var e event
		require.NoError(t, json.Unmarshal(line, &e))
		if e.Action == "pass" || e.Action == "fail" {
			took = append(took, e.Elapsed)
		}
	}
	require.Len(t, took, 2)
	require.GreaterOrEqual(t, took[0], 2.0)
	require.Less(t, took[0], 3600.0)
	require.GreaterOrEqual(t, took[1], 3600.0)
}

func TestMissed(t *testing.T) {
	var b bytes.Buffer
	s := &stream{w: &b}
	u := newSuite(s, "p")
	u.test("ok", "")
	_, trouble := missed(b.Bytes(), s.failed(), "KASAN")
	require.Contains(t, trouble, "nothing failed")
	u.test("log", "BUG: KASAN: use-after-free")
	noticed, trouble := missed(b.Bytes(), s.failed(), "KASAN: .*free")
	require.Empty(t, trouble)
	require.Contains(t, noticed, "KASAN")
	_, trouble = missed(b.Bytes(), s.failed(), "DMA-API")
	require.Contains(t, trouble, "failed without DMA-API")
}

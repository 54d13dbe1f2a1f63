package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stream makes go test -json lines out of "action package test output" rows.
func stream(rows ...[4]string) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, `{"Action":%q,"Package":%q,"Test":%q,"Output":%q,"Elapsed":0.5}`+"\n", r[0], r[1], r[2], r[3])
	}
	return b.String()
}

// runText feeds text to the reader of a suite, through a real command.
func runText(t *testing.T, kind, text, exit string, allowed skipList) (counts, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	var out strings.Builder
	r := &runner{out: &output{w: &out}, allowed: allowed, held: new(ruleTable)}
	c := r.all([]suite{{kind, "x", "cat '" + name + "'; exit " + exit}}, 1)
	return c, out.String()
}

func TestGoStream(t *testing.T) {
	pass := [][4]string{
		{"run", "p", "TestA"},
		{"output", "p", "TestA", "quiet\n"},
		{"pass", "p", "TestA"},
		{"pass", "p", ""},
	}
	fail := [][4]string{
		{"output", "q", "TestB", "reason\n"},
		{"fail", "q", "TestB"},
		{"fail", "q", ""},
	}
	skip := [][4]string{
		{"output", "r", "TestC/one", "why\n"},
		{"skip", "r", "TestC/one"},
		{"pass", "r", ""},
	}
	hang := [][4]string{
		{"output", "s", "TestD", "panic: test timed out\n"},
		{"fail", "s", ""},
	}
	cut := [][4]string{{"output", "u", "TestE", "half\n"}}
	empty := [][4]string{{"skip", "v", ""}}

	for _, c := range []struct {
		name    string
		rows    [][4]string
		exit    string
		allowed skipList
		want    counts
		shows   string
		hides   string
	}{
		{"pass", pass, "0", nil, counts{passed: 1}, "ok   p", "quiet"},
		{"fail", fail, "1", nil, counts{failed: 1}, "reason", ""},
		{"skip", skip, "0", nil, counts{failed: 1}, "no list allows it", ""},
		{"allowed skip", skip, "0", skipList{"r": {"TestC/*"}}, counts{skipped: 1}, "ok   r", "why"},
		{"crash", hang, "1", nil, counts{failed: 1}, "test timed out", ""},
		{"cut off", cut, "1", nil, counts{failed: 1}, "half", ""},
		{"no tests", empty, "0", nil, counts{}, "== x", "FAIL"},
		{"command fails alone", pass, "3", nil, counts{passed: 1, failed: 1}, "exit status 3", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, out := runText(t, "go", stream(c.rows...), c.exit, c.allowed)
			require.Equal(t, c.want, got)
			require.Contains(t, out, c.shows)
			if c.hides != "" {
				require.NotContains(t, out, c.hides)
			}
		})
	}
}

func TestGoStreamShowsBuildFailure(t *testing.T) {
	text := `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: bad\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}
`
	got, out := runText(t, "go", text, "1", nil)
	require.Equal(t, counts{failed: 1}, got)
	require.Contains(t, out, "p.go:1: bad")
}

func TestSum(t *testing.T) {
	for _, c := range []struct {
		text, exit string
		want       counts
	}{
		{"12 passed, 0 failed, 0 skipped\n", "0", counts{passed: 12}},
		{"ring: 3 passed, 0 failed\nlist: 4 passed, 1 failed\n", "1", counts{passed: 7, failed: 1}},
		{"1 passed, 0 failed, 2 skipped\n", "0", counts{passed: 1, failed: 2}},
		{"1 passed, 0 failed\n", "2", counts{passed: 1, failed: 1}},
		{"nothing\n", "0", counts{failed: 1}},
		{"nothing\n", "1", counts{failed: 1}},
	} {
		got, out := runText(t, "sum", c.text, c.exit, nil)
		require.Equal(t, c.want, got, c.text)
		require.Contains(t, out, c.text)
	}
}

func TestStep(t *testing.T) {
	got, _ := runText(t, "step", "text", "0", nil)
	require.Equal(t, counts{passed: 1}, got)
	got, out := runText(t, "step", "text\n", "4", nil)
	require.Equal(t, counts{failed: 1}, got)
	require.Contains(t, out, "exit status 4")
}

func TestLanes(t *testing.T) {
	var out strings.Builder
	r := &runner{out: &output{w: &out}, held: new(ruleTable)}
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	// Each end of a pipe waits for the other: one lane alone would hang.
	got := r.all([]suite{
		{"sum", "write", "echo 2 passed, 0 failed >" + pipe},
		{"sum", "read", "cat " + pipe + "; printf 'no end'"},
		{"step", "after", "echo said"},
	}, 2)
	require.Equal(t, counts{passed: 3, failed: 1}, got, "what writes says nothing that counts")
	for _, want := range []string{"read: 2 passed, 0 failed\n", "read: no end\n", "after: said\n", "write: FAIL: no line"} {
		require.Contains(t, out.String(), want)
	}
}

func TestFailuresAtTheEnd(t *testing.T) {
	var out, end strings.Builder
	r := &runner{out: &output{w: &out}, held: new(ruleTable)}
	total := r.all([]suite{
		{"step", "one", "echo; echo '--- FAIL: TestX'; echo '    suite.go:7: wrong'; echo '        [Goroutine 7 in state select]'; echo '==7==ERROR: AddressSanitizer: heap'; echo 'make[1]: *** [Makefile:9: units] Error 2'; echo chatter; echo '	/src/x.go:9 +0x1d'; exit 3"},
		{"sum", "two", "yes 'FAIL again' | head -n 70; echo 1 passed, 70 failed"},
	}, 1)
	r.out.failures.report(&end, total.failed)
	require.True(t, strings.HasPrefix(end.String(), "== what failed\n--- FAIL: TestX\nsuite.go:7: wrong\n[Goroutine 7 in state select]\n==7==ERROR: AddressSanitizer: heap\nmake[1]: *** [Makefile:9: units] Error 2\nFAIL: exit status 3\nFAIL again\n"), end.String())
	require.Contains(t, end.String(), "and 16 lines more\n")
	require.NotContains(t, end.String(), "chatter")
	require.NotContains(t, end.String(), "/src/", "of a stack")

	end.Reset()
	r.out.failures.report(&end, 0)
	require.Empty(t, end.String(), "nothing failed")
}

func TestTimes(t *testing.T) {
	var all times
	for i := range 2 * slowest {
		all.add("test", fmt.Sprintf("%sp Test%d", module, i), time.Duration(i)*time.Second)
	}
	all.add("suite", "quick", time.Second)
	var out strings.Builder
	all.report(&out)
	require.Contains(t, out.String(), "== slowest suites\n     1.0 s  quick\n")
	require.Contains(t, out.String(), "== slowest tests\n    23.0 s  p Test23\n    22.0 s  p Test22\n")
	require.NotContains(t, out.String(), "Test11\n", "only so many")
}

func TestParseSuites(t *testing.T) {
	got, err := parseSuites([]string{"go packages: go test -json ./...", "step lint: make lint"})
	require.NoError(t, err)
	require.Equal(t, []suite{{"go", "packages", "go test -json ./..."}, {"step", "lint", "make lint"}}, got)
	for _, bad := range [][]string{nil, {"lint"}, {"lint: make lint"}, {"odd x: y"}} {
		_, err := parseSuites(bad)
		require.Error(t, err)
	}
}

func TestReadSkips(t *testing.T) {
	name := filepath.Join(t.TempDir(), "skips")
	require.NoError(t, os.WriteFile(name, []byte("# why\n\np TestA no gcc\np TestB/* no net # note\n"), 0o600))
	l, err := readSkips(name)
	require.NoError(t, err)
	require.True(t, l.has("p", "TestA"))
	require.True(t, l.has("p", "TestB/x"))
	require.False(t, l.has("p", "TestC"))
	require.False(t, l.has("q", "TestA"))

	require.NoError(t, os.WriteFile(name, []byte("p TestA\n"), 0o600))
	_, err = readSkips(name)
	require.ErrorContains(t, err, ":1: want PACKAGE TEST REASON")
	_, err = readSkips(name + "x")
	require.Error(t, err)
}

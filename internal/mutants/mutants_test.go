package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the top of the tree.
var root = filepath.Join("..", "..")

// TestMistakesApply: each mistake changes one place of a file that exists.
func TestMistakesApply(t *testing.T) {
	require.GreaterOrEqual(t, len(mistakes), 40)
	seen := map[mistake]bool{}
	for _, m := range mistakes {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err)
		_, err = m.mutated(string(text))
		require.NoError(t, err, m.what)
		require.NotEmpty(t, m.test, m.what)
		m.what = ""
		require.False(t, seen[m], "twice: %+v", m)
		seen[m] = true
	}
}

// TestOneIsFound: tests find one of the mistakes, another every day; make mutants-reports has all.
func TestOneIsFound(t *testing.T) {
	m := mistakes[int(time.Now().Unix()/(24*60*60))%len(mistakes)]
	how, err := m.try(t.Context(), root)
	require.NoError(t, err, "%s: %s", m.file, m.what)
	t.Logf("%s: %s: %s", m.file, m.what, how)
}

// TestMissed: a change that no test notices, one that does not compile, tests that do not exist and
// text that does not occur are not found mistakes.
func TestMissed(t *testing.T) {
	m := mistake{file: "internal/mutants/mutant.go", from: "// errNotFound means that", to: "// errNotFound says that", test: "TestMistakesApply"}
	_, err := m.try(t.Context(), root)
	require.ErrorIs(t, err, errNotFound)
	m.to = "\nnonsense"
	_, err = m.try(t.Context(), root)
	require.ErrorIs(t, err, errNotBuilt)
	m.to, m.test = "// x", "TestNoSuch"
	_, err = m.try(t.Context(), root)
	require.ErrorContains(t, err, "names no test")
	m.from = "no such text" + " in the file"
	_, err = m.try(t.Context(), root)
	require.ErrorContains(t, err, "occurs 0 times")
	m = mistake{file: stack + "device/overrun.c", from: "// SPDX", to: "/**/ // SPDX", test: "TestOverrunFinds", in: stack}
	_, err = m.try(t.Context(), root)
	require.ErrorIs(t, err, errNotFound)
	m.file = "internal/none.go"
	_, err = m.try(t.Context(), root)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestPlaces: a place of each kind, and no place in comments, texts, declarations and parts of statements.
func TestPlaces(t *testing.T) {
	goText := `package p

const limit = 5 < 6

// a < b
func f(a int) (n int) {
	if a < 3 && a != 7 {
		n = g("a < b")
	}
	for i := range 9 {
		n += i
		h(
			i + 1,
		)
	}
	panic("x")
}
`
	cText := `#define MANY (1 < 2) \
	&& 3
static int f(struct x *p)
{
	int n = 0;

	if (p->a > 3) /* a > b */
		p->b++;
	atomic_store_explicit(&p->a, n,
			      memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	return n;
}
`
	for _, c := range []struct {
		text string
		c    bool
		want []string
	}{
		{goText, false, []string{`3 comparison turned: "<=" for "<"`, `3 bound plus 1: "7" for "6"`, `7 comparison turned: "<=" for "<"`,
			`7 bound plus 1: "4" for "3"`, `7 comparison turned: "||" for "&&"`, `7 comparison turned: "==" for "!="`,
			"8 statement out: \"\" for \"n = g(\\\"a < b\\\")\"", `11 statement out: "" for "n += i"`, `13 bound plus 1: "2" for "1"`}},
		{cText, true, []string{`7 comparison turned: ">=" for ">"`, `7 bound plus 1: "4" for "3"`, `8 statement out: ";" for "p->b++;"`,
			`10 order weakened: "memory_order_relaxed" for "memory_order_release"`,
			`11 order weakened: "memory_order_relaxed" for "memory_order_seq_cst"`,
			`11 statement out: ";" for "atomic_thread_fence(memory_order_seq_cst);"`}},
	} {
		var got []string
		for _, p := range places(c.text, c.c) {
			got = append(got, fmt.Sprintf("%d %s: %q for %q", p.line, p.kind, p.after, p.before))
			require.Equal(t, p.before, c.text[p.at:p.at+len(p.before)])
		}
		require.Equal(t, c.want, got)
	}
}

// TestFind: there are enough places of each kind, and each one that changes nothing is still there.
func TestFind(t *testing.T) {
	all, err := find(root)
	require.NoError(t, err)
	kinds, same := map[string]int{}, map[string]bool{}
	for _, f := range all {
		kinds[f.kind]++
		same[f.equivalent()] = true
	}
	require.GreaterOrEqual(t, len(all), 150)
	for _, kind := range []string{turned, bound, out, order} {
		require.Greater(t, kinds[kind], 25, kind)
	}
	for _, e := range equivalents {
		require.True(t, same[e.why], "no place of %s is %q any more", e.file, e.code)
	}
}

// TestNoticed: a changed file in C fails a C test, a conversation or a rule of the tree.
func TestNoticed(t *testing.T) {
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	require.NoError(t, copyTree(top))
	for _, c := range []struct {
		tests
		file, from, to, how string
	}{
		{tests{"kmod/test", "access_test"}, "kmod/core/access.c", "bar == NFC_BAR_MSIX ||", "", "access_test: what_is_the_drivers_is_not_written"},
		{tests{"kmod/test", "talk"}, "kmod/core/half.c", "next_d2h - 1", "next_d2h - 2", "TestTalk/"},
		{tests{"firmware/test", "talk"}, "firmware/core/move.c", "ch->moved = 1;", "", "TestTalkMoves/"},
		{tests{"firmware/test", "talk"}, "firmware/core/relay.c", "if (both && leaves_queue(ch))", "if (!ch && leaves_queue(ch))", "TestTalkGuests/"},
		{tests{"internal/lint", "TestBarriersHavePartners"}, "firmware/core/calls.h", "memory_order_acquire", "memory_order_relaxed", "TestBarriersHavePartners"},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.file))
		require.NoError(t, err)
		require.Contains(t, string(text), c.from)
		how, err := c.try(t.Context(), top, c.file, strings.Replace(string(text), c.from, c.to, 1))
		require.NoError(t, err)
		require.Contains(t, how, c.how)
	}
	right, err := os.ReadFile(filepath.Join(root, "firmware/core/move.c"))
	require.NoError(t, err)
	how, err := tests{"firmware/test", "talk"}.try(t.Context(), top, "firmware/core/move.c", string(right))
	require.ErrorIs(t, err, errNotFound, how)
	_, err = tests{"kmod/test", "access_test"}.try(t.Context(), top, "kmod/core/access.c", "nonsense")
	require.ErrorIs(t, err, errNotBuilt)
}

// every has TestSliceIsFound make every change of the module's core.
var every = flag.Bool("every", false, "make every change of the module's core, not those of a day")

// TestSliceIsFound: tests find each of ten changes of the module's core, others every day. Its tests are
// functions of their input alone, so that a change is found each time or never.
func TestSliceIsFound(t *testing.T) {
	t.Chdir(root)
	require.NoError(t, copyTree("."))
	all, err := find(".")
	require.NoError(t, err)
	var core []change
	for _, p := range all {
		if strings.HasPrefix(p.file, "kmod/core/") && p.equivalent() == "" {
			core = append(core, change{p.String(), p.file, false, p.try})
		}
	}
	require.GreaterOrEqual(t, len(core), 15)
	if !*every {
		core = rotate(core, 10, time.Now())
	}
	for _, c := range core {
		how, err := c.try(t.Context())
		if !errors.Is(err, errNotBuilt) {
			require.NoError(t, err, c.name)
		}
		t.Logf("%s: %s", c.name, how)
	}
}

// TestRotate: each day has other changes, until all were there.
func TestRotate(t *testing.T) {
	all := make([]change, 7)
	for i := range all {
		all[i].name = fmt.Sprint(i)
	}
	seen := map[string]bool{}
	for day := range 4 {
		slice := rotate(all, 2, time.Unix(int64(day)*24*60*60, 0))
		require.Len(t, slice, 2)
		for _, c := range slice {
			seen[c.name] = true
		}
	}
	require.Len(t, seen, 7)
	require.Len(t, rotate(all, 0, time.Time{}), 7)
}

// TestVoid: a place whose change does not compile shows nothing; a mistake by hand that does not is missed.
func TestVoid(t *testing.T) {
	for byHand, want := range map[bool]string{false: "void   a: b: ", true: "MISSED a: b: "} {
		var out bytes.Buffer
		code := makeAll(t.Context(), []change{{"a: b", "a", byHand, func(context.Context) (string, error) { return "", errNotBuilt }}}, &out)
		require.Equal(t, byHand, code == 1)
		require.Contains(t, out.String(), want)
	}
}

func TestList(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--list", "--only", "pcie"}, &out, &errs))
	require.Contains(t, out.String(), "bench/internal/papers/pcie.go: a packet on PCI Express without LCRC\n")
	require.Equal(t, 2, run(t.Context(), []string{"--none"}, &out, &errs))
}

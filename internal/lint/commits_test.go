package lint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clone is a repository of a test with the script and its list of areas.
type clone struct {
	t   *testing.T
	dir string
}

func (c clone) command(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(withoutGit(os.Environ()), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// withoutGit drops what git sets for its hooks, so that the tests may run in one.
func withoutGit(env []string) []string {
	return slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, "GIT_") })
}

// must runs a command that succeeds.
func (c clone) must(name string, args ...string) {
	c.t.Helper()
	if out, err := c.command(name, args...); err != nil {
		c.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// write puts a file into the clone.
func (c clone) write(name, text string) {
	c.t.Helper()
	name = filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		c.t.Fatal(err)
	}
}

// commit makes a commit that adds a number of lines.
func (c clone) commit(message string, lines int) {
	c.t.Helper()
	c.write("lines", fmt.Sprint(strings.Repeat("x\n", lines), message))
	c.must("git", "add", "-A")
	c.must("git", "commit", "-q", "-m", message)
}

// passes runs the script, which must be content and print want.
func (c clone) passes(want string, args ...string) {
	c.t.Helper()
	if out, err := c.command("scripts/commit-msg.sh", args...); err != nil || !strings.Contains(out, want) {
		c.t.Errorf("commit-msg %q: %v, want %q:\n%s", args, err, want, out)
	}
}

// fails runs the script, which must find want.
func (c clone) fails(want string, args ...string) {
	c.t.Helper()
	if out, err := c.command("scripts/commit-msg.sh", args...); err == nil || !strings.Contains(out, want) {
		c.t.Errorf("commit-msg %q: %v, want %q:\n%s", args, err, want, out)
	}
}

func newClone(t *testing.T) clone {
	c := clone{t, t.TempDir()}
	c.write("CONTRIBUTING.md", fileOf(t, "CONTRIBUTING.md").text)
	return c
}

// script adds the script to a clone.
func (c clone) script() { c.write("scripts/commit-msg.sh", fileOf(c.t, "scripts/commit-msg.sh").text) }

const fineMessage = "mailbox: wait for room before an offer\n\nOffers were dropped under load; seen in a soak.\n"

func TestCommitMessages(t *testing.T) {
	c := newClone(t)
	c.script()
	c.must("git", "init", "-q")
	for _, m := range []struct{ message, finds string }{
		{fineMessage, ""},
		{fineMessage + "\n# a comment of the editor that is much longer than a hundred columns, as they are now and then in some of them\n", ""},
		{fineMessage + "https://example.org/" + strings.Repeat("long", 40) + "\n", ""},
		{"Merge branch x", ""},
		{"fixup! mailbox: wait", ""},
		{"wait for room\n\nBody.\n", "the subject is not"},
		{"mailbox: Wait for room\n\nBody.\n", "the subject is not"},
		{"mailbox:wait for room\n\nBody.\n", "the subject is not"},
		{"kitchen: wait for room\n\nBody.\n", "no area kitchen"},
		{"mailbox: wait for room.\n\nBody.\n", "full stop"},
		{"mailbox: wait for room\nBody.\n", "second line"},
		{"mailbox: wait for room\n", "no body"},
		{"mailbox: wait for room\n\n# only a comment\n", "no body"},
		{"mailbox: wait for room\n\n" + strings.Repeat("word ", 21) + "\n", "columns"},
	} {
		c.write("message", m.message)
		if m.finds == "" {
			c.passes("", "message")
		} else {
			c.fails(m.finds, "message")
		}
	}
	c.write("large", strings.Repeat("x\n", 201))
	c.must("git", "add", "large")
	c.write("message", fineMessage)
	c.passes("warning: 201 lines changed", "message")
	c.write("message", fineMessage+"A rename, in one piece.\n")
	if out, err := c.command("scripts/commit-msg.sh", "message"); err != nil || out != "" {
		t.Errorf("a rename: %v %s", err, out)
	}
}

// TestNewCommits: what was committed before the rules were there, or changed, is
// not held to them, in clones of any depth.
func TestNewCommits(t *testing.T) {
	c := newClone(t)
	c.must("git", "init", "-q", "-b", "main")
	c.commit("Before the rules", 1)
	c.script()
	c.passes("0 messages", "--new") // not committed yet
	c.commit("ci: check the messages of commits\n\nNobody did.", 2)
	c.passes("0 messages", "--new")
	c.commit(fineMessage, 3)
	c.passes("1 messages", "--new")
	c.commit("mailbox: say nothing more", 4)
	c.fails("no body", "--new")
	for _, depth := range []int{1, 2, 50} {
		shallow := clone{t, filepath.Join(t.TempDir(), "c")}
		c.must("git", "clone", "-q", "--depth", fmt.Sprint(depth), "file://"+c.dir, shallow.dir)
		if depth == 1 {
			shallow.passes("0 messages", "--new")
		} else {
			shallow.fails("no body", "--new")
		}
	}
	c.fails("no body", "--range", "HEAD~1..")
	c.write("scripts/commit-msg.sh", fileOf(t, "scripts/commit-msg.sh").text+"# changed\n")
	c.commit("ci: change the rules\n\nThey were others.", 5)
	c.passes("0 messages", "--new")
	c.fails("no body", "--range", "HEAD~2..")
	c.fails("bad revision", "--range", "nonsense")
	c.fails("no file", "nofile")
	c.must("rm", "-rf", ".git")
	c.passes("no clone", "--new")
}

package lint

import (
	"strings"
	"testing"
)

// softVerbs are verbs that code does not do: a message is sent or received, not heard, and a slot has
// a place, in which it does not lie. They are counted, as some sentences need them.
var softVerbs = map[string]bool{
	"come": true, "comes": true, "came": true, "coming": true, "go": true, "goes": true, "went": true, "going": true, "gone": true,
	"lie": true, "lies": true, "lay": true, "lying": true, "tell": true, "tells": true, "told": true, "telling": true,
	"hear": true, "hears": true, "heard": true, "hearing": true,
}

// goCommands follow the name of the tool go.
var goCommands = map[string]bool{
	"build": true, "command": true, "doc": true, "embed": true, "env": true, "fix": true, "generate": true, "get": true, "install": true, "list": true,
	"linkname": true, "mod": true, "noinline": true, "norace": true, "nosplit": true, "run": true, "test": true, "tool": true, "vet": true, "work": true,
}

// softCeilings are how many of them 10,000 words of comments and documents may have, by the beginning
// of the path. They only fall.
var softCeilings = []struct {
	folder string
	most   int
}{
	{"bridge/", 6}, {"cmd/", 6}, {"docs/", 44}, {"firmware/", 6}, {"internal/", 40}, {"kmod/", 6}, {"pkg/", 6},
}

// softly counts the words of a file, and the soft verbs among them.
func softly(f *file) (words, soft int) {
	all := strings.FieldsFunc(strings.ReplaceAll(f.remarks(), ".go", ""), func(r rune) bool { return !isLetter(r) })
	for i, w := range all {
		language := w == "Go" || w == "go" && i+1 < len(all) && goCommands[all[i+1]]
		if softVerbs[strings.ToLower(w)] && !language {
			soft++
		}
	}
	return len(all), soft
}

// softRate returns the soft verbs in 10,000 words of the files below a folder, rounded up.
func softRate(files []*file, folder string) int {
	words, soft := 0, 0
	for _, f := range files {
		if strings.HasPrefix(f.path, folder) && !f.isGenerated() && !strings.HasPrefix(f.path, frozen) {
			w, s := softly(f)
			words, soft = words+w, soft+s
		}
	}
	return (soft*10_000 + words - 1) / max(words, 1)
}

// TestSoftVerbs: a change adds none. One that removes some lowers the ceiling.
func TestSoftVerbs(t *testing.T) {
	files := tree(t, ".go", ".c", ".h", ".proto", ".md")
	for _, c := range softCeilings {
		rate := softRate(files, c.folder)
		t.Logf("%s: %d of %d", c.folder, rate, c.most)
		if rate > c.most {
			t.Errorf("%s: %d soft verbs in 10,000 words, at most %d", c.folder, rate, c.most)
		}
	}
}

func TestSoftVerbsFinds(t *testing.T) {
	files := []*file{
		parseGo(t, "p/p.go", "package p\n\n// It comes and goes, as Go does in go test.\nvar came int // was told\n"),
		{path: "p/p.md", text: "A tale `lies` here.\n"},
		{path: "q/q.md", text: "They hear.\n"},
	}
	if words, soft := softly(files[0]); words != 12 || soft != 3 {
		t.Errorf("%d words, %d of them soft, want 12 and 3", words, soft)
	}
	if rate := softRate(files, "p/"); rate != 2000 {
		t.Errorf("rate %d, want 2000", rate)
	}
}

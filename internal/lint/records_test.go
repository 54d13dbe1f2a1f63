package lint

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	recordFile  = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	recordTitle = regexp.MustCompile(`^# (\d{4}) — \S`)
	recordGap   = regexp.MustCompile(`(?m)^\* (\d{4})(?: to (\d{4}))?: `)
)

// misnumbered lists the design records whose number is not that of their title,
// or that of another record, and the gaps that the folder's README does not
// explain.
func misnumbered(readme *file, records []*file) (found []string) {
	explained, seen, last := make(map[int]bool), make(map[int]string), 0
	for _, m := range recordGap.FindAllStringSubmatch(readme.text, -1) {
		from, _ := strconv.Atoi(m[1])
		to, _ := strconv.Atoi(m[2])
		for n := from; n <= max(from, to); n++ {
			explained[n] = true
		}
	}
	for _, f := range records {
		m, title := recordFile.FindStringSubmatch(path.Base(f.path)), recordTitle.FindStringSubmatch(f.text)
		if m == nil || title == nil || m[1] != title[1] {
			found = append(found, fmt.Sprintf("%s: name and title are not of one number", f.path))
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if other := seen[n]; other != "" {
			found = append(found, fmt.Sprintf("%s: %s has that number", f.path, other))
		}
		seen[n], last = f.path, max(last, n)
	}
	for n := 1; n < last; n++ {
		if seen[n] != "" && explained[n] {
			found = append(found, fmt.Sprintf("%s: there is a record %04d", readme.path, n))
		}
		if seen[n] == "" && !explained[n] {
			found = append(found, fmt.Sprintf("%s: there is no record %04d, and no word why", readme.path, n))
		}
	}
	return found
}

// notTaken begins a record of a decision that was not taken, and names the part of the folder's
// README that lists those.
const notTaken = "Not taken"

var recordLink = regexp.MustCompile(`(?m)^\* \[\d{4}\]\(([^)]+)\)`)

// misfiled lists the records that the folder's README has among those not taken while they say
// nothing of it, the other way round, and those that it does not have.
func misfiled(readme *file, records []*file) (found []string) {
	taken, rest, _ := strings.Cut(readme.text, "\n"+notTaken+":\n")
	not, _, _ := strings.Cut(rest, "\nNumbers without")
	listed := map[string]int{}
	for i, part := range []string{taken, not} {
		for _, m := range recordLink.FindAllStringSubmatch(part, -1) {
			listed[m[1]] |= 1 << i
		}
	}
	for _, f := range records {
		want := 1
		if strings.Contains(f.text, "\n\n**"+notTaken+".** ") {
			want = 2
		}
		if listed[path.Base(f.path)] != want {
			found = append(found, fmt.Sprintf("%s: the README lists it elsewhere than its state (%s or not) says", f.path, notTaken))
		}
	}
	return found
}

const recordFolder = "docs/design"

func TestRecordsAreNumbered(t *testing.T) {
	var records []*file
	for _, f := range tree(t, ".md") {
		if f.dir() == recordFolder && path.Base(f.path) != "README.md" {
			records = append(records, f)
		}
	}
	report(t, misnumbered(fileOf(t, recordFolder+"/README.md"), records))
	report(t, misfiled(fileOf(t, recordFolder+"/README.md"), records))
}

func TestMisfiledFinds(t *testing.T) {
	readme := &file{text: "* [0001](0001-a.md): a.\n\nNot taken:\n\n* [0002](0002-b.md): b.\n\nNumbers without a record:\n"}
	record := func(name, text string) *file { return &file{path: "docs/design/" + name, text: "# 1 — x\n\n" + text} }
	taken, not := record("0001-a.md", "**Decision.** x"), record("0002-b.md", "**Not taken.** x")
	report(t, misfiled(readme, []*file{taken, not}))
	wantOne(t, misfiled(readme, []*file{record("0001-a.md", "**Not taken.** x"), not}), "0001-a.md")
	wantOne(t, misfiled(readme, []*file{taken, record("0002-b.md", "x")}), "0002-b.md")
	wantOne(t, misfiled(readme, []*file{taken, not, record("0003-c.md", "x")}), "0003-c.md")
}

func TestMisnumberedFinds(t *testing.T) {
	readme := &file{path: "docs/design/README.md", text: "* 0002: why.\n* 0004 to 0005: why.\n"}
	record := func(name, title string) *file { return &file{path: "docs/design/" + name, text: title} }
	one, three, six := record("0001-a.md", "# 0001 — A"), record("0003-c.md", "# 0003 — C"), record("0006-f.md", "# 0006 — F")
	report(t, misnumbered(readme, []*file{one, three, six}))
	wantOne(t, misnumbered(readme, []*file{one, three, three}), "has that number")
	wantOne(t, misnumbered(readme, []*file{one, six}), "0003")
	wantOne(t, misnumbered(readme, []*file{one, record("0002-b.md", "# 0002 — B"), three, six}), "there is a record 0002")
	wantOne(t, misnumbered(readme, []*file{one, three, record("0004-d.md", "# 0005 — D")}), "one number")
	wantOne(t, misnumbered(readme, []*file{one, three, record("next.md", "# 0004 — D")}), "one number")
}

// mostColumns is the width of prose.
const mostColumns = 100

var codeSpan = regexp.MustCompile("`[^`]*`")

// tooWide lists the lines of prose beyond the width. Tables, code, headings and
// what has no blank to break at stay as they are.
func tooWide(f *file) (found []string) {
	fenced := false
	for i, line := range strings.Split(f.text, "\n") {
		text := strings.TrimLeft(line, " ")
		if strings.HasPrefix(text, "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(text, "|") || strings.HasPrefix(text, "#") || len([]rune(line)) <= mostColumns {
			continue
		}
		pieces := codeSpan.ReplaceAllString(strings.TrimLeft(text, "*-0123456789. "), "code")
		if strings.Contains(pieces, " ") {
			found = append(found, fmt.Sprintf("%s:%d: %d columns, at most %d", f.path, i+1, len([]rune(line)), mostColumns))
		}
	}
	return found
}

func TestProseIsWrapped(t *testing.T) {
	for _, f := range tree(t, ".md") {
		report(t, tooWide(f))
	}
}

func TestTooWideFinds(t *testing.T) {
	long, wide := strings.Repeat("word ", 20)+"more", strings.Repeat("é", mostColumns)
	for _, text := range []string{long, "* " + long, "```\n```\n" + long, "x\n\n  " + long} {
		wantOne(t, tooWide(&file{path: "a.md", text: text}), "columns")
	}
	report(t, tooWide(&file{path: "a.md", text: "| " + long + "\n# " + long + "\n```\n" + long + "\n```\n" + wide + "\n* " + wide + "éé\n"}))
}

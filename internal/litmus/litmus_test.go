package litmus

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutcomes: two threads that store and then look see too little on any processor but one in
// order.
func TestOutcomes(t *testing.T) {
	look := [][]Access{
		{{Store: true, Word: "a", Value: 1}, {Word: "b", Into: "b"}},
		{{Store: true, Word: "b", Value: 1}, {Word: "a", Into: "a"}},
	}
	require.Equal(t, []string{"a=0 b=1", "a=1 b=0", "a=1 b=1"}, Outcomes(InOrder, look))
	require.Contains(t, Outcomes(X86, look), "a=0 b=0")
	require.Contains(t, Outcomes(Arm64, look), "a=0 b=0")
	for _, thread := range look {
		thread[0].Rel, thread[1].Acq = true, true
	}
	require.NotContains(t, Outcomes(Arm64, look), "a=0 b=0")
	require.Contains(t, Outcomes(RISCV, look), "a=0 b=0")
}

// TestWrong: a test that says something else than what is so is found.
func TestWrong(t *testing.T) {
	test := Test{Name: "stores", Threads: func(With) [][]Access {
		return [][]Access{{{Store: true, Word: "a", Value: 1}, {Store: true, Word: "b", Value: 1}}, {{Word: "b", Into: "b", Acq: true}, {Word: "a", Into: "a"}}}
	}, Bad: "a=0 b=1", Drop: map[string][]Model{"": nil}}
	require.Len(t, test.Wrong(), 2)
	test.Drop[""] = []Model{Arm64, RISCV}
	require.Empty(t, test.Wrong())
}

// TestLitmusModelled: the orders of each SYNC point are enough on every processor, and none of them is
// more than some processor needs.
func TestLitmusModelled(t *testing.T) {
	for _, p := range Points() {
		for _, l := range p.Tests {
			require.Empty(t, l.Wrong(), p.Name)
		}
	}
}

var update = flag.Bool("update", false, "write the table of docs/testing.md")

// TestEachNameHasATest: the names are those of the documents, and docs/testing.md has their tests.
func TestEachNameHasATest(t *testing.T) {
	var names, tested []string
	for _, doc := range []string{"protocol", "ring"} {
		text, err := os.ReadFile("../../docs/" + doc + ".md")
		require.NoError(t, err)
		for _, row := range regexp.MustCompile("(?m)^\\| ([a-z ]+) \\|[^|]*\\|[^|]*\\|[^|\n]*\\|$").FindAllStringSubmatch(string(text), -1) {
			if regexp.MustCompile(`\.(go|c|h):`).MatchString(row[0]) {
				names = append(names, row[1])
			}
		}
	}
	table := "| SYNC | litmus test | an order left out, and where the test fails without it |\n|---|---|---|\n"
	for _, p := range Points() {
		tested = append(tested, p.Name)
		for _, l := range p.Tests {
			table += fmt.Sprintf("| %s | %s | %s |\n", p.Name, l.Name, l.fails())
		}
	}
	require.ElementsMatch(t, names, tested)
	const doc = "../../docs/testing.md"
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	if *update {
		old := regexp.MustCompile("(?m)^\\| SYNC \\|.*\n(?:\\|.*\n)*").FindString(string(text))
		require.NoError(t, os.WriteFile(doc, []byte(strings.Replace(string(text), old, table, 1)), 0o644))
		return
	}
	require.Contains(t, string(text), table, "run go test ./internal/litmus -update")
}

// fails names the orders that a test needs, with the models.
func (t Test) fails() string {
	var all []string
	for _, order := range []string{"release", "acquire", "fence"} {
		if where := t.Drop[order]; len(where) > 0 {
			var models []string
			for _, m := range where {
				models = append(models, m.String())
			}
			all = append(all, order+": "+strings.Join(models, ", "))
		}
	}
	return strings.Join(all, "; ")
}

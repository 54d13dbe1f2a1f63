package report

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	texts "text/template"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

//go:embed templates
var templates embed.FS

// folder is where a report goes, and how much of it: the flags of both commands.
type folder struct {
	out   string
	only  []string
	short bool
	all   []string // what --only may name
	kind  string   // one of them
}

// flags gives a command its flags. short says what --short gives.
func (f *folder) flags(cmd *cobra.Command, short string) {
	cmd.Flags().StringVar(&f.out, "out", "", "write the report to this folder, which is made (required)")
	cmd.Flags().StringSliceVar(&f.only, "only", f.all, f.kind+"s")
	cmd.Flags().BoolVar(&f.short, "short", false, short)
	// The flag is there: it was defined above.
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(f.all, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses flags that make no sense, and a folder that cannot be written to,
// before anything is measured.
func (f *folder) check() error {
	if f.out == "" {
		return cli.Usagef("--out names no folder")
	}
	for _, name := range f.only {
		if !slices.Contains(f.all, name) {
			return cli.Usagef("--only %q is none of %s", name, strings.Join(f.all, ", "))
		}
	}
	if len(f.only) == 0 {
		return cli.Usagef("--only names no %s", f.kind)
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return cli.UsageError{Err: fmt.Errorf("--out: %w", err)}
	}
	return nil
}

// write writes files of the report. Each is written whole or not at all: what an earlier run left
// is replaced by name.
func (f *folder) write(files map[string][]byte) error {
	for name, data := range files {
		if err := cli.Replace(filepath.Join(f.out, name), data); err != nil {
			return cli.UsageError{Err: fmt.Errorf("write report: %w", err)}
		}
	}
	return nil
}

// render fills in a page in Markdown.
func render(name string, report any) ([]byte, error) {
	var b bytes.Buffer
	t, err := texts.New(name).Funcs(texts.FuncMap{"figure": figure, "printed": printed, "goals": goalsText}).ParseFS(templates, "templates/"+name)
	if err == nil {
		err = t.Execute(&b, report)
	}
	return b.Bytes(), err
}

// goalsText is the table of goals.
func goalsText(goals []cli.Goal) string {
	var b strings.Builder
	cli.WriteGoals(&b, goals)
	return b.String()
}

// figure writes v with three digits or as a whole number.
func figure(v *float64) string {
	switch {
	case v == nil:
		return "–"
	case *v >= 1000:
		return strconv.FormatFloat(*v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(*v, 'g', 3, 64)
	}
}

// printed writes a paper's figure with the digits that the paper prints, but for zeros at its end.
func printed(v *float64) string {
	switch {
	case v == nil:
		return "–"
	case *v < 1e-4:
		return strconv.FormatFloat(*v, 'g', -1, 64)
	default:
		return strconv.FormatFloat(*v, 'f', -1, 64)
	}
}

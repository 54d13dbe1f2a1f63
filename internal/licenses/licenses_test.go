package licenses

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// accepted are the licences under which a module may be linked into what this project hands on.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT"}

// linked returns the modules in the programs that scripts/licenses.sh names, as "path version folder".
func linked(t *testing.T) []string {
	t.Helper()
	script, err := os.ReadFile("../../scripts/licenses.sh")
	require.NoError(t, err)
	programs := regexp.MustCompile(`(?m)^programs="(.*)"$`).FindSubmatch(script)
	require.NotNil(t, programs)
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"},
		strings.Fields(string(programs[1]))...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=1") // go.work joins the modules of the programs
	out, err := cmd.Output()
	require.NoError(t, err)
	modules := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == "" })
}

// missing lists the modules of which a text lacks the version, or a licence that the module has.
func missing(t *testing.T, text string, modules []string) (lacks []string) {
	for _, m := range modules {
		part := strings.Fields(m)
		heading := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(part[0]) + `(/\S+)? ` + regexp.QuoteMeta(part[1]) + ` \S+$`)
		if !heading.MatchString(text) {
			lacks = append(lacks, part[0]+" "+part[1])
		}
		files, err := filepath.Glob(part[2] + "/[LNC][IOC][CTP][EIY]*") // LICENSE, LICENCE, NOTICE, COPYING
		require.NoError(t, err)
		require.NotEmpty(t, files, "%s has no licence", part[0])
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			if !strings.Contains(text, plain(string(data))) {
				lacks = append(lacks, part[0]+" "+filepath.Base(file))
			}
		}
	}
	return lacks
}

// plain returns a text without blanks at the ends of its lines.
func plain(text string) string {
	return strings.TrimSpace(regexp.MustCompile(`[ \t\r]+\n`).ReplaceAllString(text, "\n"))
}

// TestNoneIsMissing: each module that a program links is in the list with its version and its text,
// and under a licence that is accepted. After an update of a module: make licenses.
func TestNoneIsMissing(t *testing.T) {
	modules := linked(t)
	require.Greater(t, len(modules), 30)
	require.Empty(t, missing(t, Text, modules), "run make licenses")
	for _, m := range regexp.MustCompile(`(?m)^\S+ (?:v\d\S*|go) (\S+)$`).FindAllStringSubmatch(Text, -1) {
		require.Contains(t, accepted, m[1], m[0])
	}
}

// TestMissingFinds: a module, a version and a text that are gone are found.
func TestMissingFinds(t *testing.T) {
	modules := linked(t)
	i := slices.IndexFunc(modules, func(m string) bool { return strings.HasPrefix(m, "github.com/quic-go/quic-go ") })
	require.GreaterOrEqual(t, i, 0)
	one := modules[i : i+1]
	require.Len(t, missing(t, strings.ReplaceAll(Text, "github.com/quic-go/quic-go v", "github.com/quic-go/quic-go v9"), one), 1)
	require.Len(t, missing(t, strings.ReplaceAll(Text, "Copyright (c) 2016 the quic-go authors", ""), one), 1)
}

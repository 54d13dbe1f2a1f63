package release

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/nfcomms/nfcomms"

// author is the environment of git for commits.
var author = []string{
	"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@example.org", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@example.org",
}

// output runs a command in a folder and returns what it printed.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), &failure)
	return strings.TrimSpace(string(out))
}

// release is the version of the tree, which stands in one place.
func release(t *testing.T, top string) string {
	t.Helper()
	header, err := os.ReadFile(filepath.Join(top, "kmod", "nfcm_kmod.h"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^#define NFCM_MODULE_VERSION "(\d+\.\d+\.\d+)"$`).FindSubmatch(header)
	require.Len(t, found, 2, "the version in kmod/nfcm_kmod.h")
	return "v" + string(found[1])
}

// write writes a file of a folder, which may be a script, and the folders on the way.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
}

// nested are the folders of modules within the module.
func nested(files []string) (folders []string) {
	for _, f := range files {
		if dir, is := strings.CutSuffix(f, "/go.mod"); is {
			folders = append(folders, dir+"/")
		}
	}
	return folders
}

// serve writes the tree as that version to a folder as a module proxy has it, with the modules in
// these folders, and returns its URL.
func serve(t *testing.T, top, version string, folders ...string) string {
	t.Helper()
	proxy := t.TempDir()
	list := output(t, top, nil, "git", "-c", "core.quotepath=off", "ls-files", "--cached", "--others", "--exclude-standard")
	files := strings.Split(list, "\n")
	for _, folder := range append(folders, "") {
		serveModule(t, proxy, top, version, folder, files)
	}
	return "file://" + proxy
}

// serveModule writes the module in a folder, which requires the others as the version that they have then.
func serveModule(t *testing.T, proxy, top, version, folder string, files []string) {
	t.Helper()
	path := module
	if folder != "" {
		path, folder = module+"/"+folder, folder+"/"
	}
	var data bytes.Buffer
	w := zip.NewWriter(&data)
	for _, f := range files {
		rest, own := strings.CutPrefix(f, folder)
		inside := slices.ContainsFunc(nested(files), func(o string) bool { return o != folder && strings.HasPrefix(o, folder) && strings.HasPrefix(f, o) })
		info, err := os.Lstat(filepath.Join(top, f))
		if !own || inside || err != nil || !info.Mode().IsRegular() {
			continue // as go leaves them out
		}
		to, err := w.Create(path + "@" + version + "/" + rest)
		require.NoError(t, err)
		_, err = to.Write(released(t, filepath.Join(top, f), version))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": string(released(t, filepath.Join(top, folder, "go.mod"), version)), version + ".zip": data.String(),
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version),
	} {
		write(t, filepath.Join(proxy, path, "@v"), name, text)
	}
}

// released returns a file as a release has it: a go.mod requires the library's version.
func released(t *testing.T, file, version string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	if filepath.Base(file) != "go.mod" {
		return text
	}
	return bytes.ReplaceAll(text, []byte(module+" v0.0.0"), []byte(module+" "+version))
}

// commands are the uses of the module that the documents tell their readers to type.
func commands(t *testing.T, top string) (all []string) {
	t.Helper()
	uses := regexp.MustCompile(`\bgo (?:get|install) ` + regexp.QuoteMeta(module) + `[\w./@-]*\w`)
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(top, "docs", "tutorial", "*.md"))
	require.NoError(t, err)
	for _, page := range append(append(pages, more...), filepath.Join(top, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		all = append(all, uses.FindAllString(string(text), -1)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestModuleIsFetched runs the commands of the documents, each as it stands, in a module elsewhere
// against a proxy that has this tree as a release. The other modules are those in the local cache.
func TestModuleIsFetched(t *testing.T) {
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir, bin, version := t.TempDir(), t.TempDir(), release(t, top)
	cache := output(t, top, nil, "go", "env", "GOMODCACHE")
	env := []string{
		"GOPROXY=" + serve(t, top, version, "pkg/telemetry") + ",file://" + cache + "/cache/download", "GOSUMDB=off", "GOWORK=off", "GOBIN=" + bin,
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GOTOOLCHAIN=local", "CGO_ENABLED=1",
	}
	hello, err := os.ReadFile(filepath.Join(top, "examples", "hello", "main.go"))
	require.NoError(t, err)
	write(t, dir, "main.go", string(hello))
	output(t, dir, env, "go", "mod", "init", "example.org/hello")
	all := commands(t, top)
	require.NotEmpty(t, all)
	for _, c := range all {
		words := strings.Fields(c)
		output(t, dir, env, words[0], words[1:]...)
		if program, is := strings.CutPrefix(words[2], module+"/cmd/"); is && words[1] == "install" {
			program, _, _ = strings.Cut(program, "@")
			require.FileExists(t, filepath.Join(bin, program))
		}
	}
	require.Equal(t, version, output(t, dir, env, "go", "list", "-m", "-f", "{{.Version}}", module))
	require.Contains(t, output(t, dir, env, "go", "run", "."), "42 <nil>")
	require.Contains(t, output(t, dir, env, filepath.Join(bin, "nfctl"), "version", "--client"), version)
}

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/scripted"
)

// TestJobsNameProgramsAndNodes: each entry of the tables is a program, and what stands behind its
// @ a node of the job.
func TestJobsNameProgramsAndNodes(t *testing.T) {
	for _, j := range jobs {
		list := j.list()
		require.Len(t, list, len(j.programs), j.name)
		names := make(map[string]bool)
		for _, p := range list {
			require.NotEmpty(t, p.source, "%s: no program %s", j.name, p.name)
			require.False(t, names[p.name], "%s runs %s twice", j.name, p.name)
			names[p.name] = true
		}
	}
}

// TestNode: a program that runs with another device is the same binary, knows its node, and has a
// name of its own.
func TestNode(t *testing.T) {
	j := job{nodes: append([]node{{name: "plain"}}, lies("flip@20")...), programs: []string{"bulk", "bulk@flip@20"}}
	list := j.list()
	require.Equal(t, []string{"--address", "dev:0", "/bin"}, list[0].args)
	require.Equal(t, []string{"--address", "dev:1", "/bin"}, list[1].args)
	require.Equal(t, "bulk", list[1].binary)
	require.Equal(t, "bulk-flip-20", list[1].name)
	require.Equal(t, []string{"NFC_NODE=/dev/nfcomms1", "NFC_SCRIPT=flip@20", "NFC_CORRUPTS=1"}, list[1].env)
	j.params = loaded
	require.Contains(t, j.list()[1].env, "NFC_PARAMS="+loaded, "for programs that load the module again")
}

// TestScriptsNameKinds: nfsim knows each kind of fault that a job's device is to make.
func TestScriptsNameKinds(t *testing.T) {
	table, err := os.ReadFile(filepath.Join("..", "..", "cmd", "nfsim", "internal", "hostile", "plan.go"))
	require.NoError(t, err)
	known := map[string]bool{"": true}
	for _, m := range regexp.MustCompile(`\{name: "([^"]+)"`).FindAllStringSubmatch(string(table), -1) {
		known[m[1]] = true
	}
	for _, k := range scripted.Kinds {
		known[k.Name] = true
	}
	for _, j := range jobs {
		for _, n := range j.nodes {
			for entry := range strings.SplitSeq(n.script, ",") {
				kind := regexp.MustCompile(`^[a-z-]*`).FindString(entry)
				require.True(t, known[kind], "%s: nfsim has no fault %q", j.name, kind)
			}
		}
	}
}

// quoted is a case of a C test, or a job that is named by its kind, as documents have them.
var quoted = regexp.MustCompile("`([a-z0-9]+(?:_[a-z0-9]+){2,}|(?:defect|debug|campaign)-[a-z0-9-]+)`")

// TestRecordNamesCasesAndJobs: each case and job that is to repeat a defect is still there.
func TestRecordNamesCasesAndJobs(t *testing.T) {
	there := make(map[string]bool)
	for _, j := range jobs {
		there[j.name] = true
	}
	for _, folder := range []string{"c", "../../firmware/test", "../../kmod/test", "../../kmod/lib/test"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.c"))
		require.NoError(t, err)
		require.NotEmpty(t, files, folder)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`\bCASE\((\w+)\)`).FindAllStringSubmatch(string(text), -1) {
				there[m[1]] = true
			}
		}
	}
	text, err := os.ReadFile("../../docs/record.md")
	require.NoError(t, err)
	names := quoted.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, names)
	for _, m := range names {
		if strings.HasSuffix(m[1], "_test") {
			continue // a program that make runs
		}
		assert.True(t, there[m[1]], "record.md: no case or job %s", m[1])
	}
}

// TestKernels: each that is offered is one, and what does not go with another processor is refused.
func TestKernels(t *testing.T) {
	for _, name := range kernelNames {
		j := baseJob("exec")
		rest, err := parseMachine("exec", []string{"-kernel", name, "x"}, &j)
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, rest)
		require.Equal(t, name, j.kernel)
	}
	for _, flags := range [][]string{{"-kernel", "riscv"}, {"-kernel", "arm64", "-iommu"}} {
		j := baseJob("exec")
		_, err := parseMachine("exec", flags, &j)
		require.ErrorAs(t, err, new(usageError), "%v", flags)
	}
	err := shellCommand(t.Context(), []string{"-kernel", "arm64"})
	require.ErrorAs(t, err, new(usageError))
	for _, j := range jobs {
		require.Contains(t, kernelNames, j.kernel, j.name)
	}
}

// TestUnder: jobs of the debug kernel run under another one, all others under their own.
func TestUnder(t *testing.T) {
	chosen := []job{{kernel: "debug", kmemleak: true}, {kernel: "backports"}}
	require.ErrorAs(t, under("arm64", chosen), new(usageError))
	require.NoError(t, under("release", chosen))
	require.Equal(t, []job{{kernel: "release"}, {kernel: "backports"}}, chosen)
}

// TestDevices: how many a machine has is a number from 1 on.
func TestDevices(t *testing.T) {
	for _, text := range []string{"-1", "0", "x", "65"} {
		j := baseJob("exec")
		_, err := parseMachine("exec", []string{"-devices", text}, &j)
		require.ErrorAs(t, err, new(usageError), text)
	}
	j := baseJob("exec")
	_, err := parseMachine("exec", []string{"-devices", "3"}, &j)
	require.NoError(t, err)
	require.Len(t, j.nodes, 3)
}

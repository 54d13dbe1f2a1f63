package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
)

// manifest is what the rules below are about. Manifests have other keys, too.
type manifest struct {
	Kind      string   `yaml:"kind"`
	Resources []string `yaml:"resources"`
	Spec      struct {
		podSpec  `yaml:",inline"` // of a Pod
		Template struct {
			Spec podSpec `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type podSpec struct {
	Token           *bool       `yaml:"automountServiceAccountToken"`
	Containers      []container `yaml:"containers"`
	SecurityContext struct {
		Seccomp struct {
			Type string `yaml:"type"`
		} `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
}

type container struct {
	Name            string                         `yaml:"name"`
	Image           string                         `yaml:"image"`
	Env             []struct{ Name, Value string } `yaml:"env"`
	SecurityContext *struct {
		Escalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
		Privileged bool  `yaml:"privileged"`
		Capability struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
}

const folder = "../../deploy/kubernetes"

// manifests reads all files of the folder but the template of the chart.
func manifests(t *testing.T) map[string][]manifest {
	files, err := filepath.Glob(folder + "/*/*.yaml")
	require.NoError(t, err)
	all := make(map[string][]manifest)
	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == "templates" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var m manifest
			if err := d.Decode(&m); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err, file)
			}
			all[file] = append(all[file], m)
		}
	}
	return all
}

// TestManifestsAreListed: each file is in the list of its folder, and the lists have no other.
func TestManifestsAreListed(t *testing.T) {
	listed, there := make(map[string]bool), 0
	all := manifests(t)
	for file, list := range all {
		if list[0].Kind != "Kustomization" && list[0].Kind != "Component" {
			there++
			continue
		}
		for _, name := range list[0].Resources {
			path := filepath.Join(filepath.Dir(file), name)
			_, err := os.Stat(path)
			require.NoError(t, err, file)
			if strings.HasSuffix(name, ".yaml") {
				listed[path] = true
			}
		}
	}
	require.Len(t, listed, there-len(patches)-1, "all but the patches, and that of egress")
}

// patches are manifests that others complete.
var patches = map[string]bool{"simulated/device.yaml": true, "driver/driver.yaml": true, "dra-simulated/shares.yaml": true}

// TestManifestsAreConfined: no container keeps a right that it does not name, each has bounds, and
// variables and resources are those that the plugin knows.
func TestManifestsAreConfined(t *testing.T) {
	containers := 0
	for file, list := range manifests(t) {
		for _, m := range list {
			spec := m.Spec.Template.Spec
			if m.Kind == "Pod" {
				spec = m.Spec.podSpec
			}
			for _, c := range spec.Containers {
				containers++
				confined(t, file, c)
				if !patches[strings.TrimPrefix(file, folder+"/")] {
					require.Equal(t, "RuntimeDefault", spec.SecurityContext.Seccomp.Type, file)
					require.False(t, spec.Token == nil || *spec.Token, "%s: it has a token of the API server", file)
				}
			}
		}
	}
	require.Equal(t, 14, containers)
}

func confined(t *testing.T, file string, c container) {
	for _, e := range c.Env {
		if e.Value == "" || strings.HasPrefix(e.Name, "NFDRA_") { // a field of the pod; of another module, whose test has them
			continue
		}
		require.NoError(t, knows(e.Name, e.Value), "%s: %s", file, c.Name)
	}
	if c.Image == "" { // of a patch: the rest is in the manifest
		return
	}
	s := c.SecurityContext
	require.NotNil(t, s, "%s: %s", file, c.Name)
	require.False(t, s.Privileged || s.Escalation == nil || *s.Escalation || !s.ReadOnly, "%s: %s", file, c.Name)
	require.Equal(t, []string{"ALL"}, s.Capability.Drop, "%s: %s", file, c.Name)
	require.NotEmpty(t, c.Resources.Limits["memory"], "%s: %s", file, c.Name)
	require.NotEmpty(t, c.Resources.Requests["cpu"], "%s: %s", file, c.Name)
	for name := range c.Resources.Limits {
		require.True(t, name == "memory" || slices.Contains([]string{plugin.ResourceDevice, plugin.ResourceShare}, name), "%s: %s", file, name)
	}
}

// knows reports whether a variable is a flag's, and has a value of it.
func knows(name, value string) error {
	seen := false
	err := fromEnvironment(newRoot(nil, io.Discard, new(bool)).Flags(), func(asked string) string {
		if asked != name {
			return ""
		}
		seen = true
		return value
	})
	if err != nil {
		return err
	}
	if !seen {
		return errors.New(name + " is no variable of nfplugin")
	}
	return nil
}

// TestKnows: a variable that nobody reads, and a value that makes no sense, are found.
func TestKnows(t *testing.T) {
	require.NoError(t, knows("NFPLUGIN_GRACE", "5s"))
	require.Error(t, knows("NFPLUGIN_GRACE", "soon"))
	require.Error(t, knows("NFPLUGIN_NOTHING", "1"))
}

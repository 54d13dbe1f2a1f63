package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// typed are the kinds of manifests. That of the operator of Prometheus has no types here.
var typed = map[string]func() any{
	"Namespace":           func() any { return new(v1.Namespace) },
	"Pod":                 func() any { return new(v1.Pod) },
	"DaemonSet":           func() any { return new(appsv1.DaemonSet) },
	"Deployment":          func() any { return new(appsv1.Deployment) },
	"Job":                 func() any { return new(batchv1.Job) },
	"NetworkPolicy":       func() any { return new(networkingv1.NetworkPolicy) },
	"PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
	"PodMonitor":          func() any { return new(map[string]any) },
}

// TestManifestsRender: kustomize renders each folder, and no manifest has a key that its kind has not,
// or a value of another type.
func TestManifestsRender(t *testing.T) {
	for folder, want := range map[string]int{"plugin": 3, "simulated": 3, "samples": 4, "monitoring": 1} {
		rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/kubernetes/"+folder)
		require.NoError(t, err, folder)
		text, err := rendered.AsYaml()
		require.NoError(t, err, folder)
		n := 0
		for d := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; n++ {
			document, err := d.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, folder)
			var kind struct{ Kind string }
			require.NoError(t, yaml.Unmarshal(document, &kind))
			require.Contains(t, typed, kind.Kind, folder)
			require.NoError(t, yaml.UnmarshalStrict(document, typed[kind.Kind]()), "%s: %s", folder, document)
		}
		require.Equal(t, want, n, folder)
	}
	require.Error(t, yaml.UnmarshalStrict([]byte("kind: Pod\nspec: {container: []}"), new(v1.Pod)), "a key that no pod has")
}

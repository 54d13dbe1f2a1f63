package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/nfcomms/nfcomms/test/kubernetes/internal/render"
)

const folder = "../../deploy/kubernetes"

// typed are the kinds of manifests. That of the operator of Prometheus has no types here.
var typed = map[string]func() any{
	"Namespace":           func() any { return new(v1.Namespace) },
	"Pod":                 func() any { return new(v1.Pod) },
	"Service":             func() any { return new(v1.Service) },
	"StatefulSet":         func() any { return new(appsv1.StatefulSet) },
	"DaemonSet":           func() any { return new(appsv1.DaemonSet) },
	"Deployment":          func() any { return new(appsv1.Deployment) },
	"Job":                 func() any { return new(batchv1.Job) },
	"NetworkPolicy":       func() any { return new(networkingv1.NetworkPolicy) },
	"PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
	"PodMonitor":          func() any { return new(map[string]any) },

	"ServiceAccount":                   func() any { return new(v1.ServiceAccount) },
	"ClusterRole":                      func() any { return new(rbacv1.ClusterRole) },
	"ClusterRoleBinding":               func() any { return new(rbacv1.ClusterRoleBinding) },
	"ValidatingAdmissionPolicy":        func() any { return new(admissionv1.ValidatingAdmissionPolicy) },
	"ValidatingAdmissionPolicyBinding": func() any { return new(admissionv1.ValidatingAdmissionPolicyBinding) },
	"DeviceClass":                      func() any { return new(resourcev1.DeviceClass) },
	"ResourceClaimTemplate":            func() any { return new(resourcev1.ResourceClaimTemplate) },
}

// TestManifestsRender: kustomize renders each folder, and no manifest has a key that its kind has not,
// or a value of another type.
func TestManifestsRender(t *testing.T) {
	for name, want := range map[string]int{"plugin": 3, "simulated": 3, "samples": 4, "monitoring": 1, "fabric": 4, "dra": 10, "dra-simulated": 10, "claims": 3} {
		require.Len(t, kustomized(t, name), want, name)
	}
	require.Error(t, yaml.UnmarshalStrict([]byte("kind: Pod\nspec: {container: []}"), new(v1.Pod)), "a key that no pod has")
}

// TestMonitorScrapesMetrics: the driver, which has no metrics, is no target of the PodMonitor.
func TestMonitorScrapesMetrics(t *testing.T) {
	monitor := (*kustomized(t, "monitoring")["PodMonitor"].(*map[string]any))["spec"].(map[string]any)
	scraped := make(map[string]bool)
	for _, e := range monitor["podMetricsEndpoints"].([]any) {
		scraped[e.(map[string]any)["port"].(string)] = true
	}
	for name, want := range map[string][]string{"plugin": {"plugin"}, "simulated": {"daemon", "plugin"}, "dra": nil, "dra-simulated": {"daemon"}} {
		var have []string
		for _, c := range kustomized(t, name)["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec.Containers {
			for _, p := range c.Ports {
				if scraped[p.Name] {
					have = append(have, c.Name)
				}
			}
		}
		require.ElementsMatch(t, want, have, name)
	}
}

// kustomized returns the objects that kustomize makes of a folder, by kind.
func kustomized(t *testing.T, name string) map[string]any {
	text, err := render.Folder(folder + "/" + name)
	require.NoError(t, err, name)
	return objects(t, text)
}

// objects decodes each document strictly as its kind, and returns them by kind; those of the fabric
// have "fabric/" before it, and kinds that have several the name after it.
func objects(t *testing.T, text []byte) map[string]any {
	all := make(map[string]any)
	for d := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := d.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if len(bytes.TrimSpace(document)) == 0 { // before the first line that divides
			continue
		}
		var o struct {
			Kind     string
			Metadata struct{ Name string }
		}
		require.NoError(t, yaml.Unmarshal(document, &o))
		require.Contains(t, typed, o.Kind, "%s", document)
		key := o.Kind
		switch {
		case o.Metadata.Name == "nfcomms-fabric":
			key = "fabric/" + key
		case o.Kind == "DeviceClass" || o.Kind == "ResourceClaimTemplate": // of which there are several
			key += "/" + o.Metadata.Name
		}
		require.NotContains(t, all, key)
		all[key] = typed[o.Kind]()
		require.NoError(t, yaml.UnmarshalStrict(document, all[key]), "%s", document)
	}
}

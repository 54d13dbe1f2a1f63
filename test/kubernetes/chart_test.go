package kubernetes

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nfcomms/nfcomms/test/kubernetes/internal/render"
)

// TestChartGivesTheManifests: with its own values, and with those that name a folder, the chart gives
// the objects that kustomize gives, without the namespace, which Helm needs before.
func TestChartGivesTheManifests(t *testing.T) {
	for values, folders := range map[string][]string{
		"":                                {"plugin"},
		"simulated: true":                 {"simulated"},
		"claims: true":                    {"dra"},
		"{simulated: true, claims: true}": {"dra-simulated"},
		"podMonitor: true":                {"plugin", "monitoring"},
		"fabric: 2x2x1":                   {"plugin", "fabric"},
	} {
		want := make(map[string]any)
		for _, name := range folders {
			for kind, object := range kustomized(t, name) {
				want[kind] = object
			}
		}
		delete(want, "Namespace")
		require.Equal(t, byName(want), byName(chart(t, values)), "values: %s", values)
	}
}

// byName sorts the lists that Kubernetes merges by name.
func byName(all map[string]any) map[string]any {
	pod := &all["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec
	slices.SortFunc(pod.Containers, func(a, b v1.Container) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(pod.Volumes, func(a, b v1.Volume) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range pod.Containers {
		slices.SortFunc(c.Env, func(a, b v1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

// chart returns the objects that the chart gives for values, by kind.
func chart(t *testing.T, values string) map[string]any {
	text, err := render.Chart(folder, "nfcomms", values)
	require.NoError(t, err, values)
	return objects(t, text)
}

// TestChartLint: helm lint reports no more than that there is no icon.
func TestChartLint(t *testing.T) {
	for _, m := range lint.RunAll(folder, nil, "nfcomms").Messages {
		require.Equal(t, support.InfoSev, m.Severity, m.Error())
	}
}

// TestChartValues: each value is in its place.
func TestChartValues(t *testing.T) {
	all := chart(t, `
image: registry.example/nfcomms:v1@sha256:0123
imagePullSecrets: [{name: registry}]
simulated: true
shares: 4
reset: true
cdi: /var/run/cdi
nodeSelector: {example.com/card: "yes"}
resources: {device: {limits: {memory: 1Gi}}}
monitoringNamespace: metrics
`)
	pod := byName(all)["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec
	require.Equal(t, []v1.LocalObjectReference{{Name: "registry"}}, pod.ImagePullSecrets)
	require.Equal(t, map[string]string{"example.com/card": "yes"}, pod.NodeSelector)
	for _, c := range pod.Containers {
		require.Equal(t, "registry.example/nfcomms:v1@sha256:0123", c.Image)
	}
	device, plugin := pod.Containers[1], pod.Containers[2]
	require.Equal(t, "1Gi", device.Resources.Limits.Memory().String())
	require.Equal(t, "64Mi", device.Resources.Requests.Memory().String(), "what no value names stays")
	require.Equal(t, []v1.EnvVar{
		{Name: "NFPLUGIN_CDI_DIR", Value: "/var/run/cdi"}, {Name: "NFPLUGIN_HTTP", Value: "0.0.0.0:7452"},
		{Name: "NFPLUGIN_RESET", Value: "true"}, {Name: "NFPLUGIN_SHARES", Value: "4"},
	}, plugin.Env)
	require.Contains(t, plugin.VolumeMounts, v1.VolumeMount{Name: "cdi", MountPath: "/var/run/cdi"})
	require.Equal(t, "/var/run/cdi", pod.Volumes[0].HostPath.Path)
	from := all["NetworkPolicy"].(*networkingv1.NetworkPolicy).Spec.Ingress[0].From[0]
	require.Equal(t, map[string]string{"kubernetes.io/metadata.name": "metrics"}, from.NamespaceSelector.MatchLabels)
}

// TestChartClaims: values reach the driver, and its rights are those of a release's namespace.
func TestChartClaims(t *testing.T) {
	text, err := render.Chart(folder, "other", "{claims: true, shares: 4, reset: true, evict: true, cdi: /etc/cdi, resources: {driver: {limits: {memory: 1Gi}}}}")
	require.NoError(t, err)
	all := objects(t, text)
	require.Equal(t, "other", all["ClusterRoleBinding"].(*rbacv1.ClusterRoleBinding).Subjects[0].Namespace)
	require.Contains(t, string(text), `request.userInfo.username == "system:serviceaccount:other:nfcomms"`)
	for kind, o := range all {
		cluster := strings.HasPrefix(kind, "ClusterRole") || strings.HasPrefix(kind, "ValidatingAdmission") || strings.HasPrefix(kind, "DeviceClass")
		require.Equal(t, cluster, o.(metav1.Object).GetNamespace() == "", kind)
		require.NotEqual(t, "nfcomms", o.(metav1.Object).GetNamespace(), kind)
	}
	pod := byName(all)["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec
	driver := pod.Containers[0]
	require.Equal(t, "1Gi", driver.Resources.Limits.Memory().String())
	var env []string
	for _, e := range driver.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	require.Equal(t, []string{"NFDRA_CDI_DIR=/etc/cdi", "NFDRA_EVICT=true", "NFDRA_HTTP=0.0.0.0:7452", "NFDRA_NODE=", "NFDRA_RESET=true", "NFDRA_SHARES=4"}, env)
	require.Contains(t, driver.VolumeMounts, v1.VolumeMount{Name: "cdi", MountPath: "/etc/cdi"})
	require.Equal(t, "/etc/cdi", pod.Volumes[0].HostPath.Path)
}

// TestChartFabric: a torus has as many pods as nodes.
func TestChartFabric(t *testing.T) {
	set := chart(t, "{fabric: 4x3x2, image: other, monitoringNamespace: metrics, imagePullSecrets: [{name: registry}]}")["fabric/StatefulSet"].(*appsv1.StatefulSet)
	require.EqualValues(t, 24, *set.Spec.Replicas)
	pod := set.Spec.Template.Spec
	require.Contains(t, pod.Containers[0].Args, "--torus=4x3x2")
	require.Equal(t, "other", pod.Containers[1].Image)
	require.Equal(t, []v1.LocalObjectReference{{Name: "registry"}}, pod.ImagePullSecrets)
}

// TestChartRefuses: a value that makes no sense is an error that names it.
func TestChartRefuses(t *testing.T) {
	for values, named := range map[string]string{
		"share: 8":                   "share",
		"image: ''":                  "image",
		"fabric: 4x4":                "fabric",
		"fabric: 33x1x1":             "fabric",
		"fabric: 1x1x1":              "fabric",
		"shares: -1":                 "shares",
		"shares: 1025":               "shares",
		"shares: eight":              "shares",
		"shares: '8,nic0=1025'":      "shares",
		"shares: '8,=2'":             "shares",
		"simulated: 'yes'":           "simulated",
		"reset: 1":                   "reset",
		"cdi: run/cdi":               "cdi",
		"nodeSelector: {card: true}": "nodeSelector",
		"monitoringNamespace: A":     "monitoringNamespace",
		"resources: {plugins: {}}":   "plugins",
		"resources: {device: {}}":    "device", // of a pod without one
		"resources: {driver: {}}":    "driver",
		"claims: 1":                  "claims",
		"evict: true":                "evict", // without claims
		"{claims: true, resources: {plugin: {}}}":    "plugin",
		"resources: {plugin: {limits: {memory: x}}}": "memory",
		"imagePullSecrets: [registry]":               "imagePullSecrets",
	} {
		_, err := render.Chart(folder, "nfcomms", values)
		require.ErrorContains(t, err, named, values)
	}
	for _, values := range []string{"shares: 0", "shares: '8,nic0=2,nic-1.x=0'", "{simulated: true, resources: {device: {}}}", "resources: {plugin: {limits: {cpu: 0.5}}}"} {
		_, err := render.Chart(folder, "nfcomms", values)
		require.NoError(t, err, values)
	}
}

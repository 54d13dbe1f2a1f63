package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/nfcomms/nfcomms/test/kubernetes/internal/render"
)

// Resources of the plugin.
const (
	whole = v1.ResourceName("nfcomms.dev/device")
	share = v1.ResourceName("nfcomms.dev/share")
)

// operator has the kind that deploy/kubernetes/monitoring needs, with no more than a schema of anything.
const operator = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podmonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: PodMonitor, plural: podmonitors}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// cluster is one whose nodes have no kubelet: a test does what that does.
type cluster struct {
	*testing.T
	config *rest.Config
	client *kubernetes.Clientset
}

// apply applies documents as kubectl apply --server-side --validate=strict does.
func (c *cluster) apply(text []byte) {
	c.Helper()
	all, err := dynamic.NewForConfig(c.config)
	require.NoError(c, err)
	groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	require.NoError(c, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for d := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := d.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(c, err)
		if len(bytes.TrimSpace(document)) == 0 { // before the first line that divides
			continue
		}
		var o unstructured.Unstructured
		require.NoError(c, yaml.Unmarshal(document, &o.Object))
		m, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		require.NoError(c, err)
		namespace := o.GetNamespace()
		if namespace == "" && m.Scope.Name() == "namespace" {
			namespace = "default"
		}
		data, err := o.MarshalJSON()
		require.NoError(c, err)
		force := true
		_, err = all.Resource(m.Resource).Namespace(namespace).Patch(c.Context(), o.GetName(), types.ApplyPatchType, data,
			metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, Force: &force})
		require.NoError(c, err, "%s", document)
	}
}

// folder applies a folder of the manifests.
func (c *cluster) folder(name string) {
	text, err := render.Folder("../../../deploy/kubernetes/" + name)
	require.NoError(c, err, name)
	c.apply(text)
}

// release applies the objects of a release of the chart, in a namespace of its own, and waits until
// so many pods of it have a node.
func (c *cluster) release(namespace, values string, pods int) {
	c.apply([]byte(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + namespace + `, labels: {pod-security.kubernetes.io/enforce: privileged}}}`))
	text, err := render.Chart("../../../deploy/kubernetes", namespace, values)
	require.NoError(c, err, values)
	c.apply(text)
	c.await(namespace+"/", pods, 0)
}

// node adds a node, or has one offer another number of devices.
func (c *cluster) node(name, devices string, cordoned bool) {
	nodes, q := c.client.CoreV1().Nodes(), resource.MustParse
	require.NoError(c, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := nodes.Get(c.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			n, err = nodes.Create(c.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		n.Spec.Taints, n.Spec.Unschedulable = nil, cordoned // without the taint of a new node
		if n, err = nodes.Update(c.Context(), n, metav1.UpdateOptions{}); err != nil {
			return err
		}
		n.Status.Capacity = v1.ResourceList{v1.ResourceCPU: q("8"), v1.ResourceMemory: q("32Gi"), v1.ResourcePods: q("110"), whole: q("1"), share: q("4")}
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
		n.Status.Allocatable[whole] = q(devices)
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		_, err = nodes.UpdateStatus(c.Context(), n, metav1.UpdateOptions{})
		return err
	}))
}

// kubelets has pods that have a node run, and those that were deleted end, until stop.
func (c *cluster) kubelets() (stop func()) {
	ctx, cancel := context.WithCancel(c.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); err == nil {
				for i := range pods.Items {
					c.kubelet(ctx, &pods.Items[i])
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// kubelet does its part for a pod. The next round does again a step that fails.
func (c *cluster) kubelet(ctx context.Context, p *v1.Pod) {
	pods := c.client.CoreV1().Pods(p.Namespace)
	switch {
	case p.Spec.NodeName == "":
	case p.DeletionTimestamp != nil:
		_ = pods.Delete(ctx, p.Name, *metav1.NewDeleteOptions(0))
	case p.Status.Phase == v1.PodPending:
		p.Status.Phase = v1.PodRunning
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue})
		_, _ = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	}
}

// pod adds a pod with a whole device.
func (c *cluster) pod(name string) {
	c.apply([]byte(`{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `}, spec: {
securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: c,
securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}, resources: {limits: {nfcomms.dev/device: 1}}}]}}`))
}

// placed returns the nodes of pods by name, of those whose names begin so; one that has none is "".
// Names of other namespaces than "default" have that before a slash.
func (c *cluster) placed(prefix string) map[string]string {
	nodes := make(map[string]string)
	pods, err := c.client.CoreV1().Pods("").List(c.Context(), metav1.ListOptions{})
	require.NoError(c, err)
	for _, p := range pods.Items {
		name := strings.TrimPrefix(p.Namespace+"/"+p.Name, "default/")
		if strings.HasPrefix(name, prefix) && p.DeletionTimestamp == nil {
			nodes[name] = p.Spec.NodeName
		}
	}
	return nodes
}

// await waits until so many pods have a node, and others none.
func (c *cluster) await(prefix string, with, without int) {
	c.Helper()
	eventually(c.T, func() string {
		nodes, none := c.placed(prefix), 0
		for _, n := range nodes {
			if n == "" {
				none++
			}
		}
		if len(nodes)-none != with || none != without {
			return fmt.Sprintf("pods of %s: %q, want %d with a node and %d without", prefix, nodes, with, without)
		}
		return ""
	})
}

// TestManifests: an API server takes each manifest, and what the chart makes, with samples in a
// namespace of the level "restricted". Pods go where devices are, also after one turned sick, and
// while a node is drained.
func TestManifests(t *testing.T) {
	quiet(t)
	config, client := start(t)
	c := &cluster{T: t, config: config, client: client}
	c.apply([]byte(operator))
	eventually(t, func() string {
		if _, err := client.Discovery().ServerResourcesForGroupVersion("monitoring.coreos.com/v1"); err != nil {
			return err.Error()
		}
		return ""
	})
	c.apply([]byte(`{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {pod-security.kubernetes.io/enforce: restricted}}}`))
	for i := range 3 {
		c.node(fmt.Sprint("n", i), "1", false)
	}
	stop := c.kubelets()
	for _, folder := range []string{"plugin", "simulated", "monitoring", "samples", "fabric"} {
		c.folder(folder)
	}
	c.await("nfcomms-", 8, 0)         // of a Deployment 3, of a Job 4, and one alone
	c.await("nfcomms/nfcomms-", 7, 0) // of a DaemonSet 3, of a StatefulSet 4
	c.release("simulated", "simulated: true", 3)
	c.release("both", "{simulated: true, claims: true}", 3)
	c.claims()
	c.sick()
	c.drain(stop)
	c.document()
}

// sick adds a pod more than there are devices left. A device that is sick is not given again, and is
// once it is well.
func (c *cluster) sick() {
	for i := range 3 {
		c.pod(fmt.Sprint("wants-", i))
	}
	c.await("wants-", 2, 1)
	for name, node := range c.placed("wants-") {
		if node != "" {
			c.node(node, "0", false)
			require.NoError(c, c.client.CoreV1().Pods("default").Delete(c.Context(), name, *metav1.NewDeleteOptions(0)))
			c.await("wants-", 1, 1)
			c.node(node, "1", false)
			c.await("wants-", 2, 0)
			return
		}
	}
}

// drain has a node take no pods more and evicts those of the Deployment one by one, as kubectl drain
// does. Its budget lets the next go once there is another in place of the last. stop stops the
// kubelets, so that there is none.
func (c *cluster) drain(stop func()) {
	eventually(c.T, func() string {
		b, err := c.client.PolicyV1().PodDisruptionBudgets("default").Get(c.Context(), "nfcomms-shares", metav1.GetOptions{})
		if err != nil || b.Status.DisruptionsAllowed != 1 {
			return fmt.Sprint("a budget: ", b.Status, err)
		}
		return ""
	})
	stop()
	evict := func(name string) error {
		return c.client.PolicyV1().Evictions("default").Evict(c.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}})
	}
	pods := c.placed("nfcomms-shares")
	names := slices.Sorted(maps.Keys(pods))
	drained := pods[names[0]]
	c.node(drained, "1", true)
	require.NoError(c, evict(names[0]))
	require.True(c, apierrors.IsTooManyRequests(evict(names[1])), "two at a time")
	defer c.kubelets()()
	for _, name := range names[1:] {
		eventually(c.T, func() string {
			if err := evict(name); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	c.await("nfcomms-shares", 3, 0)
	for name, node := range c.placed("nfcomms-shares") {
		require.NotEqual(c, drained, node, name)
	}
}

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

// claimer is the part of a kubelet that has drivers prepare claims: its own manager of them, and its
// registration of plugins.
type claimer struct {
	*cluster
	*dra.Manager
	node, plugins string
	stop          func()
}

// quiet keeps the log of the kubelet's parts, which is shown if the test fails.
func quiet(t *testing.T) {
	var log bytes.Buffer // the handler locks it
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() {
		klog.ClearLogger()
		if t.Failed() {
			t.Log(log.String())
		}
	})
}

// start starts a manager, as a kubelet that starts does, with the state that an earlier one left in a
// folder.
func (k *claimer) start(state string) {
	if k.stop != nil {
		k.stop()
	}
	ctx, cancel := context.WithCancel(k.Context())
	k.stop = cancel
	var err error
	k.Manager, err = dra.NewManager(klog.Background(), k.client, state)
	require.NoError(k.T, err)
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	node := func(ctx context.Context) (*v1.Node, error) {
		return k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	}
	require.NoError(k.T, k.Start(ctx, k.active, node, ready))
	plugins := pluginmanager.NewPluginManager(k.plugins, record.NewFakeRecorder(100))
	plugins.AddHandler(registerapi.DRAPlugin, k.GetWatcherHandler())
	go plugins.Run(ctx, ready, ctx.Done())
}

// active returns the pods of the node.
func (k *claimer) active() (list []*v1.Pod) {
	pods, err := k.client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.node})
	if err != nil {
		k.Errorf("pods of a node: %v", err)
		return nil
	}
	for i := range pods.Items {
		list = append(list, &pods.Items[i])
	}
	return list
}

// pod returns one of the namespace "default".
func (k *claimer) pod(name string) *v1.Pod {
	p, err := k.client.CoreV1().Pods("default").Get(k.Context(), name, metav1.GetOptions{})
	require.NoError(k.T, err)
	return p
}

// prepare has the claims of a pod prepared once the driver is registered, and returns the names of
// devices that its containers start with.
func (k *claimer) prepare(name string) (devices []string) {
	p := k.pod(name)
	eventually(k.T, func() string {
		if err := k.PrepareResources(k.Context(), p); err != nil {
			return err.Error()
		}
		return ""
	})
	return k.given(p)
}

// given returns the names of devices that the containers of a pod start with. All have the same.
func (k *claimer) given(p *v1.Pod) (devices []string) {
	for i := range p.Spec.Containers {
		info, err := k.GetResources(p, &p.Spec.Containers[i])
		require.NoError(k.T, err)
		var list []string
		for _, d := range info.CDIDevices {
			list = append(list, d.Name)
		}
		if i > 0 {
			require.Equal(k.T, devices, list)
		}
		devices = list
	}
	return devices
}

// unprepare has the claims of a pod given back, also one more time, and deletes it.
func (k *claimer) unprepare(name string) {
	p := k.pod(name)
	eventually(k.T, func() string {
		if err := k.UnprepareResources(k.Context(), p); err != nil {
			return err.Error()
		}
		return ""
	})
	require.NoError(k.T, k.UnprepareResources(k.Context(), p))
	require.NoError(k.T, k.client.CoreV1().Pods("default").Delete(k.Context(), name, *metav1.NewDeleteOptions(0)))
}

// left returns what the driver keeps of claims: specifications and notes.
func (k *claimer) left(dir string) string {
	files, err := os.ReadDir(filepath.Join(dir, "cdi"))
	require.NoError(k.T, err)
	notes, err := os.ReadFile(filepath.Join(dir, "plugins/nfcomms.dev/checkpoint.json"))
	require.NoError(k.T, err)
	return fmt.Sprint(files, strings.Contains(string(notes), `"namespace"`))
}

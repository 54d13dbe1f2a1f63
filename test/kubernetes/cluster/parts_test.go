package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parts has two claims of one device prepared. It turns sick and well again under both.
func (c *cluster) parts(k *claimer, d *cards) {
	c.apply([]byte(`{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: rest}, spec: {spec: {devices: {requests: [
{name: share, exactly: {deviceClassName: share.nfcomms.dev, capacity: {requests: {channels: "36"}}}}]}}}}`))
	c.claiming("less", "rest")
	c.await("less", 1, 0)
	more, less := k.prepare("more"), k.prepare("less")
	require.Regexp(c, "-nic4$", more[0])
	require.Regexp(c, "-nic4$", less[0])
	require.NotEqual(c, more, less)
	require.Equal(c, more, k.prepare("more"))
	d.set("nic4")
	k.health(v1.ResourceHealthStatusUnhealthy, "the daemon reports failed", "more", "less")
	d.set("")
	k.health(v1.ResourceHealthStatusHealthy, "", "more", "less")
}

// health waits until the manager names pods whose devices changed, and the status that the kubelet
// writes for them has the health.
func (k *claimer) health(want v1.ResourceHealthStatus, message string, names ...string) {
	uids := make(map[string]bool)
	for _, name := range names {
		uids[string(k.pod(name).UID)] = true
	}
	for len(uids) > 0 {
		select {
		case u := <-k.Updates():
			for _, uid := range u.PodUIDs {
				delete(uids, uid)
			}
		case <-time.After(watchdog):
			k.Fatalf("no word of %v", names)
		}
	}
	for _, name := range names {
		eventually(k.T, func() string {
			p := k.pod(name)
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c"}}
			k.UpdateAllocatedResourcesStatus(p, &p.Status)
			p, err := k.client.CoreV1().Pods("default").UpdateStatus(k.Context(), p, metav1.UpdateOptions{})
			if err != nil {
				return err.Error()
			}
			for _, s := range p.Status.ContainerStatuses[0].AllocatedResourcesStatus {
				if h := s.Resources[0]; h.Health == want && (message == "" || h.Message != nil && strings.Contains(*h.Message, message)) {
					return ""
				}
			}
			return fmt.Sprintf("the health %s of %s: %v", want, name, p.Status.ContainerStatuses)
		})
	}
}

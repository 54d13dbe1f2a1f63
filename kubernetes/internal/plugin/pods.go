package plugin

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/podresources/v1"
)

// podsTime bounds the question of one scrape.
const podsTime = 2 * time.Second

var (
	podInfo = prometheus.NewDesc("nfcomms_pod_device_info",
		"The container that has the device, or shares of it; always 1.", []string{"device", "resource", "namespace", "pod", "container"}, nil)
	podUp = prometheus.NewDesc("nfcomms_pod_resources_up",
		"1 if the kubelet listed the devices of pods at this scrape, else 0.", nil, nil)
)

// Pods collects which container has which device, as the kubelet lists it. It asks at each scrape.
type Pods struct {
	conn *grpc.ClientConn
	log  *slog.Logger
	mu   sync.Mutex
	said logged
}

// NewPods returns a collector that asks the kubelet's socket of PodResources. The kubelet need not be
// there.
func NewPods(socket string, log *slog.Logger) (*Pods, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), reconnect)
	if err != nil {
		return nil, err
	}
	return &Pods{conn: conn, log: log, said: make(logged)}, nil
}

// Close ends the connection.
func (p *Pods) Close() error { return p.conn.Close() }

// Describe sends both metrics.
func (p *Pods) Describe(descs chan<- *prometheus.Desc) {
	descs <- podInfo
	descs <- podUp
}

// Collect asks the kubelet. Several shares of a device in one container are one series.
func (p *Pods) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), podsTime)
	defer cancel()
	list, err := v1.NewPodResourcesListerClient(p.conn).List(ctx, &v1.ListPodResourcesRequest{})
	p.note(err)
	up := 1.0
	if err != nil {
		up = 0
	}
	found <- prometheus.MustNewConstMetric(podUp, prometheus.GaugeValue, up)
	seen := make(map[[5]string]bool)
	for _, pod := range list.GetPodResources() {
		for _, c := range pod.GetContainers() {
			for _, d := range c.GetDevices() {
				if d.GetResourceName() != ResourceDevice && d.GetResourceName() != ResourceShare {
					continue
				}
				for _, id := range d.GetDeviceIds() {
					labels := [5]string{deviceOf(id), d.GetResourceName(), pod.GetNamespace(), pod.GetName(), c.GetName()}
					if !seen[labels] {
						seen[labels] = true
						found <- prometheus.MustNewConstMetric(podInfo, prometheus.GaugeValue, 1, labels[:]...)
					}
				}
			}
		}
	}
}

// note logs an error that is another than the last.
func (p *Pods) note(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said.news("pods", text) && err != nil {
		p.log.Warn("the kubelet does not list the devices of pods", "reason", err)
	}
}

package metrics

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// Metrics of groups; all have the label "group".
var (
	groupMembers = groupDesc("members", "Members of the group now.")
	groupSteps   = groupDesc("steps_total", "Steps of this member, by what came of them.", "result")
	groupTime    = groupDesc("step_duration_seconds", "Time of steps. Of short ones, one in sixteen is measured and counts as all of them.")
	groupWaiting = groupDesc("step_waiting_seconds", "The part of it in which there was nothing to do but wait for others.")
	groupFrames  = groupDesc("frames_total", "Frames that went through this member's link.", "direction")
	groupBytes   = groupDesc("bytes_total", "Bytes in them, those of others that an algorithm passes on included.", "direction")
	groupChosen  = groupDesc("algorithm_info", "1 for the algorithm that exchanges now.", "algorithm")
	groupDescs   = []*prometheus.Desc{groupMembers, groupSteps, groupTime, groupWaiting, groupFrames, groupBytes, groupChosen}
)

func groupDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("nfcomms_group_"+name, help, append([]string{"group"}, labels...), nil)
}

// NewGroupCollector returns a collector of what groups lists at each scrape: the
// members of this process, each by a name of its own. A member takes about 60
// series. groups is called by the goroutine that gathers, by several at once if
// several gather.
func NewGroupCollector(groups func() iter.Seq2[string, *group.Group]) prometheus.Collector {
	return groupCollector(groups)
}

type groupCollector func() iter.Seq2[string, *group.Group]

// Describe sends what Collect may send.
func (c groupCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range groupDescs {
		ch <- d
	}
}

// Collect reads every member.
func (c groupCollector) Collect(ch chan<- prometheus.Metric) {
	for name, g := range c() {
		s := g.Stats()
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{name}, labels...)...)
		}
		send(groupMembers, gauge, float64(s.Size))
		send(groupSteps, counter, float64(s.Steps), "ok")
		send(groupSteps, counter, float64(s.Failed), "failed")
		send(groupFrames, counter, float64(s.FramesSent), "sent")
		send(groupFrames, counter, float64(s.FramesReceived), "received")
		send(groupBytes, counter, float64(s.BytesSent), "sent")
		send(groupBytes, counter, float64(s.BytesReceived), "received")
		send(groupChosen, gauge, 1, s.Algorithm)
		ch <- powersHistogram(groupTime, &s.StepTime, s.Time, name)
		ch <- powersHistogram(groupWaiting, &s.StepWaiting, s.Waiting, name)
	}
}

// Buckets end at powers of two, from a microsecond to half a minute.
const powersFirst, powersLast = 10, 35

// powersHistogram is a histogram whose element i counts what took less than 2^i ns.
func powersHistogram(d *prometheus.Desc, of *[64]uint64, sum time.Duration, name string) prometheus.Metric {
	buckets := make(map[float64]uint64)
	var count uint64
	for i, n := range of {
		count += n
		if i >= powersFirst && i <= powersLast {
			buckets[float64(uint64(1)<<i)/1e9] = count
		}
	}
	return prometheus.MustNewConstHistogram(d, count, sum.Seconds(), buckets, name)
}

package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// Metrics of groups; all have the label "group".
var (
	groupDescs = &descs{prefix: "nfcomms_group_", label: "group"}

	groupMembers = groupDescs.desc("members", "Members of the group now.")
	groupSteps   = groupDescs.desc("steps_total", "Steps of this member, by what came of them.", "result")
	groupTime    = groupDescs.desc("step_duration_seconds", "Time of steps. Of short ones, one in sixteen is measured and counts as all of them.")
	groupWaiting = groupDescs.desc("step_waiting_seconds", "The part of it in which there was nothing to do but wait for others.")
	groupFrames  = groupDescs.desc("frames_total", "Frames that went through this member's link.", "direction")
	groupBytes   = groupDescs.desc("bytes_total", "Bytes in them, those of others that an algorithm passes on included.", "direction")
	groupChosen  = groupDescs.desc("algorithm_info", "1 for the algorithm that exchanges now.", "algorithm")
)

// NewGroupCollector returns a collector of what groups lists at each scrape: the
// members of this process, each by a name of its own. A member takes about 60
// series. groups is called by the goroutine that gathers, by several at once if
// several gather.
func NewGroupCollector(groups func() iter.Seq2[string, *group.Group]) prometheus.Collector {
	return listed[*group.Group]{groupDescs, groups, readGroup}
}

func readGroup(g *group.Group, n named) {
	s := g.Stats()
	n.send(groupMembers, gauge, float64(s.Size))
	n.send(groupSteps, counter, float64(s.Steps), "ok")
	n.send(groupSteps, counter, float64(s.Failed), "failed")
	n.send(groupFrames, counter, float64(s.FramesSent), "sent")
	n.send(groupFrames, counter, float64(s.FramesReceived), "received")
	n.send(groupBytes, counter, float64(s.BytesSent), "sent")
	n.send(groupBytes, counter, float64(s.BytesReceived), "received")
	n.send(groupChosen, gauge, 1, s.Algorithm)
	n.times(groupTime, &s.StepTime, s.Time)
	n.times(groupWaiting, &s.StepWaiting, s.Waiting)
}

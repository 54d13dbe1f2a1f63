package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// psRecord is the output of nfctl ps.
type psRecord struct {
	Processes []runningRecord `json:"processes" doc:"the device processes that clients of the server started, in the order of devices and numbers"`
	Holders   []holderRecord  `json:"holders" doc:"who holds a channel to a target, in the order of devices and targets"`
}

// runningRecord is a device process.
type runningRecord struct {
	Device      string `json:"device" doc:"name of the device"`
	Process     uint64 `json:"process" doc:"number of the process at its node"`
	Node        string `json:"node" doc:"x.y.z of the fabric's node that it runs at; empty: the device's own"`
	Program     string `json:"program" doc:"the program that it runs"`
	FirstTarget uint32 `json:"first_target" doc:"target of its port 0; port i has the i-th after it"`
	Targets     uint32 `json:"targets" doc:"number of its ports"`
	Caller      string `json:"caller" doc:"who started it; empty if the server cannot tell"`
	StartTime   string `json:"start_time" doc:"when it was started, RFC 3339 in UTC"`
}

// holderRecord is the holder of a target.
type holderRecord struct {
	Device string `json:"device" doc:"name of the device"`
	farEnd
	Listener string  `json:"listener" doc:"name of the listener that the application dialed, or that accepted the channel; empty for other channels"`
	Owner    string  `json:"owner" doc:"server or application: who holds the channel"`
	Caller   string  `json:"caller" doc:"who had the server open it; empty if it is the application's own, or the server cannot tell"`
	Process  *uint64 `json:"process" doc:"the device process behind the target, at its node; null if no client started it"`
	Waiting  int32   `json:"waiting" doc:"calls that wait now, both ways"`
}

func newPs(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ps [DEVICE]", GroupID: groupLook,
		Short: "Show the users of a device: its processes, their targets and the holders of those",
		Long: `Show who holds a device, or all: the device processes that clients of the server
started, with their targets, and the channels that are open to targets, with
their holders. Processes that the application started are its own affair; one
that returned by itself stays until the next probe of its device.`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			processes, err := collect(c.ListProcesses(ctx, parentOf(args)))
			if err != nil {
				return err
			}
			channels, err := collect(c.ListChannels(ctx, parentOf(args)))
			if err != nil {
				return err
			}
			return a.print(psOf(processes, channels))
		}),
	}
}

// psOf joins processes and channels by device and target.
func psOf(processes []*nfcommsv1.Process, channels []*nfcommsv1.Channel) psRecord {
	type end struct {
		device string
		far    farEnd
	}
	r := psRecord{Processes: []runningRecord{}, Holders: []holderRecord{}}
	behind := make(map[end]uint64)
	for _, p := range processes {
		id, _ := strconv.ParseUint(lastID(p.GetName()), 10, 64) // the server's own number
		one := runningRecord{
			Device: resourceDevice(p.GetName()), Process: id, Node: p.GetNode(), Program: programID(p.GetProgram()),
			FirstTarget: p.GetFirstTarget(), Targets: p.GetTargets(), Caller: p.GetCaller(), StartTime: timeText(p.GetStartTime()),
		}
		r.Processes = append(r.Processes, one)
		for i := range one.Targets {
			behind[end{one.Device, farEnd{one.FirstTarget + i, one.Node}}] = id
		}
	}
	for _, ch := range channels {
		x := channelOf(ch)
		h := holderRecord{Device: x.Device, farEnd: x.farEnd, Listener: x.Listener, Owner: x.Owner, Caller: x.Caller, Waiting: x.Stats.waiting()}
		if id, ok := behind[end{x.Device, x.farEnd}]; ok {
			h.Process = &id
		}
		r.Holders = append(r.Holders, h)
	}
	return r
}

// targetsText is the range of a process's targets.
func (r runningRecord) targetsText() string {
	if r.Targets <= 1 {
		return at(r.Node, number(r.FirstTarget))
	}
	return at(r.Node, fmt.Sprintf("%d-%d", r.FirstTarget, r.FirstTarget+r.Targets-1))
}

func (r psRecord) table(p *printer) {
	writeTable(p, []column[runningRecord]{
		{title: "DEVICE", cell: func(x runningRecord) string { return x.Device }},
		{title: "PROCESS", right: true, cell: func(x runningRecord) string { return at(x.Node, number(x.Process)) }},
		{title: "PROGRAM", cell: func(x runningRecord) string { return x.Program }},
		{title: "TARGETS", right: true, cell: func(x runningRecord) string { return x.targetsText() }},
		{title: "STARTED BY", cell: func(x runningRecord) string { return orDash(x.Caller) }},
		{title: "SINCE", cell: func(x runningRecord) string { return x.StartTime }},
	}, r.Processes)
	p.printf("\n")
	writeTable(p, []column[holderRecord]{
		{title: "DEVICE", cell: func(x holderRecord) string { return x.Device }},
		{title: "TARGET", right: true, cell: func(x holderRecord) string { return x.farEnd.text() }},
		{title: "NAME", cell: func(x holderRecord) string { return orDash(x.Listener) }},
		{title: "PROCESS", right: true, cell: func(x holderRecord) string { return x.processText() }},
		{title: "HELD BY", cell: func(x holderRecord) string { return x.Owner }},
		{title: "OPENED BY", cell: func(x holderRecord) string { return orDash(x.Caller) }},
		{title: "WAITING", right: true, cell: func(x holderRecord) string { return number(x.Waiting) }},
	}, r.Holders)
}

func (r holderRecord) processText() string {
	if r.Process == nil {
		return "-"
	}
	return at(r.Node, number(*r.Process))
}

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// groupsRecord is the output of nfctl groups.
type groupsRecord struct {
	Groups []memberRecord `json:"groups" doc:"the members of groups in the server's process, in the order of their names"`
}

// memberRecord is a member of a group.
type memberRecord struct {
	Group          string  `json:"group" doc:"the name that the application gave the member"`
	Rank           int32   `json:"rank" doc:"its rank in the group, from 0"`
	Members        int32   `json:"members" doc:"members of the group now"`
	Algorithm      string  `json:"algorithm" doc:"the algorithm that exchanges now"`
	Reason         string  `json:"reason" doc:"how it was chosen"`
	Steps          uint64  `json:"steps" doc:"steps that ended well"`
	FailedSteps    uint64  `json:"failed_steps" doc:"steps that did not"`
	FramesSent     uint64  `json:"frames_sent" doc:"frames it sent, those of others that it passed on included"`
	FramesReceived uint64  `json:"frames_received" doc:"frames it received"`
	BytesSent      uint64  `json:"bytes_sent" doc:"bytes in the frames that it sent"`
	BytesReceived  uint64  `json:"bytes_received" doc:"bytes in those that it received"`
	StepSeconds    float64 `json:"step_seconds" doc:"time in steps, all together"`
	WaitingSeconds float64 `json:"waiting_seconds" doc:"the part of it in which there was nothing to do but wait for others"`
}

func newGroups(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "groups", GroupID: groupLook,
		Short: "Show the members of groups in the server's process, and what their steps take",
		Long: `Show the members of groups that exchange data every step, as far as they belong to
the process of the server: an application that embeds it says which. STEP is the
mean time of a step, WAITING the part of it in which there was nothing to do but
wait for others: a member that waits little is the one the others wait for.`,
		Args: cobra.NoArgs,
		RunE: a.bounded(func(ctx context.Context, c *control.Client, _ []string) error {
			r := groupsRecord{Groups: []memberRecord{}}
			for g, err := range c.ListGroups(ctx) {
				if err != nil {
					return err
				}
				r.Groups = append(r.Groups, memberOf(g))
			}
			return a.print(r)
		}),
	}
}

func memberOf(g *nfcommsv1.Group) memberRecord {
	return memberRecord{
		Group: strings.TrimPrefix(g.GetName(), "groups/"), Rank: g.GetRank(), Members: g.GetMembers(),
		Algorithm: g.GetAlgorithm(), Reason: g.GetReason(), Steps: g.GetSteps(), FailedSteps: g.GetFailedSteps(),
		FramesSent: g.GetFramesSent(), FramesReceived: g.GetFramesReceived(), BytesSent: g.GetBytesSent(), BytesReceived: g.GetBytesReceived(),
		StepSeconds: seconds(g.GetStepTime()), WaitingSeconds: seconds(g.GetWaitingTime()),
	}
}

// mean is the mean of a time over all steps; nil before the first.
func (m memberRecord) mean(total float64) *float64 {
	n := m.Steps + m.FailedSteps
	if n == 0 {
		return nil
	}
	s := total / float64(n)
	return &s
}

func (r groupsRecord) table(p *printer) {
	writeTable(p, []column[memberRecord]{
		{title: "GROUP", cell: func(m memberRecord) string { return m.Group }},
		{title: "RANK", right: true, cell: func(m memberRecord) string { return number(m.Rank) }},
		{title: "MEMBERS", right: true, cell: func(m memberRecord) string { return number(m.Members) }},
		{title: "ALGORITHM", cell: func(m memberRecord) string { return m.Algorithm }},
		{title: "STEPS", right: true, cell: func(m memberRecord) string { return number(m.Steps) }},
		{title: "FAILED", right: true, cell: func(m memberRecord) string { return number(m.FailedSteps) }, tint: memberRecord.tint},
		{title: "STEP", right: true, cell: func(m memberRecord) string { return secondsText(m.mean(m.StepSeconds)) }},
		{title: "WAITING", right: true, cell: func(m memberRecord) string { return secondsText(m.mean(m.WaitingSeconds)) }},
		{title: "SENT", right: true, cell: func(m memberRecord) string { return units.Bytes(float64(m.BytesSent)) }},
		{title: "RECEIVED", right: true, cell: func(m memberRecord) string { return units.Bytes(float64(m.BytesReceived)) }},
		{title: "WHY", wide: true, cell: func(m memberRecord) string { return orDash(m.Reason) }},
	}, r.Groups)
}

func (m memberRecord) tint() tint {
	if m.FailedSteps > 0 {
		return bad
	}
	return plainTint
}

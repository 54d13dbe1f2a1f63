package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/model"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// linkRecord is the output of nfctl fabric link cut and mend.
type linkRecord struct {
	Device string `json:"device" doc:"name of the device"`
	Node   string `json:"node" doc:"the node whose link it is"`
	Link   string `json:"link" doc:"its direction: x+, x-, y+, y-, z+ or z-"`
	Result string `json:"result" doc:"cut or mended"`
}

// linkTestRecord is the output of nfctl fabric link test.
type linkTestRecord struct {
	Device string `json:"device" doc:"name of the device"`
	kindRecord
	Node       string  `json:"node" doc:"the node that sent"`
	Link       string  `json:"link" doc:"the direction in which: x+, x-, y+, y-, z+ or z-"`
	Words      uint64  `json:"words" doc:"words of 128 bits that the other end checked"`
	Wrong      uint64  `json:"wrong_words" doc:"those of them that were not as they were sent"`
	Seconds    float64 `json:"took_seconds" doc:"how long the test took"`
	Rate       float64 `json:"bit_error_ratio" doc:"wrong words for each bit: a wrong word counts as one wrong bit"`
	Confidence float64 `json:"confidence_ratio" doc:"the probability that the ratio is below the bound"`
	Bound      float64 `json:"bound_bit_error_ratio" doc:"the ratio that errors stay below at that confidence; 1 if nothing was checked"`
}

func newFabricLink(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Test, cut and mend links",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLinkTest(a), newLinkCut(a), newLinkMend(a))
	return cmd
}

// onLink is a cobra function of what is done with a link: [DEVICE] NODE LINK. extra
// is how much longer than --timeout it may take.
func (a *app) onLink(extra *time.Duration, do func(ctx context.Context, c *control.Client, device, node, link string) (record, error)) func(*cobra.Command, []string) error {
	return a.connected(func(ctx context.Context, c *control.Client, args []string) error {
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout+*extra)
			defer cancel()
		}
		last := len(args) - 2 // NODE
		device, err := onlyDevice(ctx, c, args[:last])
		if err != nil {
			return err
		}
		if a.makesFabric() {
			if err := waitForLinks(ctx, c, device); err != nil {
				return err
			}
		}
		r, err := do(ctx, c, device, args[last], args[last+1])
		if err != nil {
			return err
		}
		return a.print(r)
	})
}

func newLinkTest(a *app) *cobra.Command {
	var duration time.Duration
	var confidence float64
	cmd := &cobra.Command{
		Use:   "test [DEVICE] NODE LINK",
		Short: "Measure the error rate of a link, with its bound",
		Long: `Send pseudo-random words from a node by a link, between packets, which continue, and
count those that the other end did not see as they were sent. The bound is the bit error
rate that the link stays below at the confidence of --confidence: without errors it
falls as the test grows longer. One direction is tested; the other is that of the
node at the other end. This needs the role admin.`,
		Example: `  nfctl fabric link test sim0 0.0.0 x+
  nfctl fabric link test sim0 1.0.0 x- --for 1m --confidence 0.99`,
		Args: cobra.RangeArgs(2, 3), ValidArgsFunction: a.completeLink,
		RunE: a.onLink(&duration, func(ctx context.Context, c *control.Client, device, node, link string) (record, error) {
			if !(confidence > 0 && confidence < 1) {
				return nil, usagef("--confidence %g is not between 0 and 1", confidence)
			}
			r, err := c.Fabrics.TestLink(ctx, &nfcommsv1.TestLinkRequest{Name: device, Node: node, Link: link, Duration: durationpb.New(duration)})
			if err != nil {
				return nil, err
			}
			return linkTestOf(deviceID(device), node, link, confidence, r), nil
		}),
	}
	cmd.Flags().DurationVar(&duration, "for", time.Second, "how long, a minute at most")
	cmd.Flags().Float64Var(&confidence, "confidence", 0.95, "of the bound, between 0 and 1")
	return cmd
}

// wordBits is what a link carries at once.
const wordBits = 128

func linkTestOf(device, node, link string, confidence float64, t *nfcommsv1.TestLinkResponse) linkTestRecord {
	r := linkTestRecord{
		Device: device, kindRecord: kindRecord{deviceKind(t.GetDeviceKind())}, Node: node, Link: link, Words: t.GetWords(), Wrong: t.GetWrongWords(),
		Seconds: seconds(t.GetTook()), Confidence: confidence, Bound: 1,
	}
	if bits := wordBits * float64(r.Words); bits > 0 {
		r.Rate = float64(r.Wrong) / bits
		r.Bound = min(model.ErrorBound(int(r.Wrong), bits, confidence), 1)
	}
	return r
}

func (r linkTestRecord) table(p *printer) {
	p.printf("link %s of %s, %s: %d words of 128 bits in %.3g s, ", r.Link, r.Node, kindText(r.Kind), r.Words, r.Seconds)
	p.printf("%s\n", p.paint(number(r.Wrong)+" wrong", r.tint()))
	if r.Words == 0 {
		p.printf("nothing was checked\n")
		return
	}
	p.printf("bit error ratio %.3g, below %.3g at a confidence of %g %%\n", r.Rate, r.Bound, 100*r.Confidence)
}

func (r linkTestRecord) tint() tint {
	if r.Wrong > 0 {
		return bad
	}
	return good
}

func newLinkCut(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "cut [DEVICE] NODE LINK",
		Short: "Take a link out of use in both directions: packets go around it",
		Args:  cobra.RangeArgs(2, 3), ValidArgsFunction: a.completeLink,
		RunE: a.onLink(new(time.Duration), func(ctx context.Context, c *control.Client, device, node, link string) (record, error) {
			_, err := c.Fabrics.CutLink(ctx, &nfcommsv1.CutLinkRequest{Name: device, Node: node, Link: link})
			if err == nil {
				err = waitForCut(ctx, c, device, node, link)
			}
			return linkRecord{deviceID(device), node, link, "cut"}, err
		}),
	}
}

// waitForCut returns when the node says that its link is broken, which it sees a moment after
// the cut: who looks at the fabric next finds it so.
func waitForCut(ctx context.Context, c *control.Client, device, node, link string) error {
	for {
		for n, err := range c.ListNodes(ctx, device) {
			if err != nil {
				return fmt.Errorf("cut, but not seen yet: %w", err)
			}
			for _, l := range n.GetLinks() {
				if n.GetAddress() == node && l.GetDirection() == link && l.GetState() == nfcommsv1.Link_STATE_BROKEN {
					return nil
				}
			}
		}
		if !pause(ctx, linksAgain) {
			return fmt.Errorf("cut, but not seen yet: %w", ctx.Err())
		}
	}
}

func newLinkMend(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mend [DEVICE] NODE LINK",
		Short: "Use a link again that was cut",
		Args:  cobra.RangeArgs(2, 3), ValidArgsFunction: a.completeLink,
		RunE: a.onLink(new(time.Duration), func(ctx context.Context, c *control.Client, device, node, link string) (record, error) {
			_, err := c.Fabrics.MendLink(ctx, &nfcommsv1.MendLinkRequest{Name: device, Node: node, Link: link})
			return linkRecord{deviceID(device), node, link, "mended"}, err
		}),
	}
}

func (r linkRecord) table(p *printer) { p.printf("link %s of %s: %s\n", r.Link, r.Node, r.Result) }

// completeLink completes DEVICE NODE LINK.
func (a *app) completeLink(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	nodes := func(ctx context.Context, c *control.Client, args []string) (found []cobra.Completion, err error) {
		for n, err := range c.ListNodes(ctx, deviceName(args[0])) {
			if err != nil {
				return nil, err
			}
			found = append(found, n.GetAddress())
		}
		return found, nil
	}
	links := func(ctx context.Context, c *control.Client, args []string) (found []cobra.Completion, err error) {
		for n, err := range c.ListNodes(ctx, deviceName(args[0])) {
			if err != nil {
				return nil, err
			}
			if n.GetAddress() != args[1] {
				continue
			}
			for _, l := range n.GetLinks() {
				found = append(found, cobra.CompletionWithDesc(l.GetDirection(), "to "+l.GetTo()))
			}
		}
		return found, nil
	}
	return a.complete(a.devices, nodes, links)(cmd, args, word)
}

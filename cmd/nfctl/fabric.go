package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// fabricRecord is the output of nfctl fabric.
type fabricRecord struct {
	Device string `json:"device" doc:"name of the device"`
	kindRecord
	Torus  string             `json:"torus" doc:"nodes in x, y and z"`
	Node   string             `json:"node" doc:"the device's own node"`
	Links  linkCounts         `json:"links" doc:"how many links are how, each counted once"`
	Nodes  []nodeRecord       `json:"nodes" doc:"all nodes, x first"`
	Routes []routeRecord      `json:"routes" doc:"the ways that --route asks for"`
	drawn  *topology.Snapshot // shown in place of a table
}

// linkCounts is how many links are how.
type linkCounts struct {
	Normal  int32 `json:"normal" doc:"they carry packets"`
	Sick    int32 `json:"sick" doc:"they carry packets, with many errors"`
	Broken  int32 `json:"broken" doc:"they do not"`
	Unknown int32 `json:"unknown" doc:"neither end was heard of"`
}

// nodeRecord is a node.
type nodeRecord struct {
	Node        string          `json:"node" doc:"its address"`
	State       string          `json:"state" doc:"normal, sick, broken or unknown: the worst of its own parts, broken if all its links are"`
	Problems    []string        `json:"problems" doc:"parts that are not normal"`
	Alive       bool            `json:"alive" doc:"it was asked; without it, all that is known is what its diagnostic word says"`
	Forwarded   uint64          `json:"forwarded" doc:"packets of others that went on"`
	Detours     uint64          `json:"detours" doc:"packets, its own too, that left dimension order there"`
	Unreachable uint64          `json:"unreachable" doc:"packets that were lost because no way led on"`
	Windows     uint64          `json:"windows" doc:"windows of its memory that there are, which others put to and get from"`
	WindowBytes uint64          `json:"window_bytes" doc:"bytes of them"`
	PageHits    uint64          `json:"page_hits" doc:"pages of its windows that puts and gets found in the cache of those used last"`
	PageMisses  uint64          `json:"page_misses" doc:"pages that were not there, and looked up"`
	Links       []linkEndRecord `json:"links" doc:"its links that lead to other nodes"`
}

// linkEndRecord is one end of a link.
type linkEndRecord struct {
	Link      string   `json:"link" doc:"its direction: x+, x-, y+, y-, z+ or z-"`
	To        string   `json:"to" doc:"the node at its other end"`
	State     string   `json:"state" doc:"normal, sick, broken or unknown: the worse of what both ends report"`
	BytesSent uint64   `json:"bytes_sent" doc:"bytes of packets that left by it, since its node started"`
	Rate      *float64 `json:"bytes_per_second" doc:"bytes of packets that left by it in --interval, for each second; null without one"`
	Packets   uint64   `json:"packets_sent" doc:"packets that left by it"`
	Repeated  uint64   `json:"packets_repeated" doc:"packets that were sent again"`
	Errors    uint64   `json:"errors" doc:"what was wrong of what came"`
	Restarts  uint64   `json:"restarts" doc:"times that it was aligned"`
	RoundTrip float64  `json:"round_trip_seconds" doc:"from a word to its credit; 0 if it was not measured"`
	Medium    string   `json:"medium" doc:"what carries its words: memory, tls, udp or connection; empty without one, and of a node that was not asked"`
}

// routeRecord is a way.
type routeRecord struct {
	From      string      `json:"from" doc:"where it begins"`
	To        string      `json:"to" doc:"where it ends"`
	Reachable bool        `json:"reachable" doc:"there is a way"`
	Hops      []hopRecord `json:"hops" doc:"its steps"`
}

// hopRecord is a step of a way.
type hopRecord struct {
	From   string `json:"from" doc:"the node that it leaves"`
	Link   string `json:"link" doc:"the link by which"`
	To     string `json:"to" doc:"the node that it reaches"`
	Detour bool   `json:"detour" doc:"the packet left dimension order, there or before"`
}

// fabricOptions are the flags of nfctl fabric.
type fabricOptions struct {
	routes   []string
	interval time.Duration
	wait     bool
}

func newFabric(a *app) *cobra.Command {
	var o fabricOptions
	cmd := &cobra.Command{
		Use: "fabric [DEVICE]", GroupID: groupLook,
		Short: "Draw the fabric that a device is a node of: states, rates, routes",
		Long: `Draw the fabric that a device is a node of, plane by plane: a row is one y, a column
one x, and links at the ends lead around. Below stand nodes and links that are not
well, links that carry something or had errors, and the ways of --route; * marks a
step of a detour around what is broken. Rates are those of --interval. A device that
--device sim: makes has links that come up just then: nfctl waits for them, as with --wait.`,
		Example: `  nfctl --device 'sim:?torus=4x4x1' fabric
  nfctl fabric sim0 --route 0.0.0:3.2.0
  nfctl fabric sim0 -o json | jq '.nodes[] | select(.state != "normal")'
  nfctl fabric link test sim0 0.0.0 x+ --for 10s`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			if o.interval < 0 {
				return usagef("--interval must not be negative")
			}
			name, err := onlyDevice(ctx, c, args)
			if err != nil {
				return err
			}
			return a.fabric(ctx, c, name, o)
		}),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.routes, "route", nil, "show the way FROM:TO, as 0.0.0:3.2.0; may be given several times")
	f.DurationVarP(&o.interval, "interval", "i", 500*time.Millisecond, "time over which rates are measured; 0: none are")
	f.BoolVar(&o.wait, "wait", false, "wait until every link carries packets, --timeout at most")
	cmd.AddCommand(newFabricLink(a))
	return cmd
}

// fabric reads a fabric twice, for rates, and prints it.
func (a *app) fabric(ctx context.Context, c *control.Client, name string, o fabricOptions) error {
	var routes []*nfcommsv1.GetRouteRequest
	for _, text := range o.routes {
		from, to, ok := strings.Cut(text, ":")
		if !ok {
			return usagef("--route %q is not FROM:TO, as 0.0.0:3.2.0", text)
		}
		routes = append(routes, &nfcommsv1.GetRouteRequest{Name: name, From: from, To: to})
	}
	if o.wait || a.makesFabric() {
		if err := waitForLinks(ctx, c, name); err != nil {
			return err
		}
	}
	r, err := readFabric(ctx, c, name, o.interval)
	if err != nil {
		return err
	}
	for _, req := range routes {
		if err := r.addRoute(ctx, c, req); err != nil {
			return err
		}
	}
	return a.print(r)
}

// makesFabric reports whether the fabric begins with this command, so that its links connect
// just then. Those of other processes may be broken.
func (a *app) makesFabric() bool { return strings.HasPrefix(a.device, "sim:") }

// linksAgain is the time between two checks of links that connect.
const linksAgain = 10 * time.Millisecond

// waitForLinks returns when every link carries packets.
func waitForLinks(ctx context.Context, c *control.Client, name string) error {
	var last *nfcommsv1.LinkCounts
	for {
		r, err := c.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: name})
		if err == nil {
			last = r.GetLinks()
			if last.GetBroken()+last.GetUnknown() == 0 {
				return nil
			}
			if !pause(ctx, linksAgain) {
				err = ctx.Err()
			}
		}
		switch {
		case err != nil && last != nil: // the server may be the first to see that the time is over
			return fmt.Errorf("%d links are broken, %d unknown: %w", last.GetBroken(), last.GetUnknown(), err)
		case err != nil:
			return err
		}
	}
}

// readFabric reads the nodes, twice if there is an interval.
func readFabric(ctx context.Context, c *control.Client, name string, interval time.Duration) (*fabricRecord, error) {
	var before []control.NodeReading
	if interval > 0 {
		var err error
		if before, err = listNodes(ctx, c, name); err != nil {
			return nil, err
		}
		if !pause(ctx, interval) {
			return nil, ctx.Err()
		}
	}
	shape, err := c.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: name})
	if err != nil {
		return nil, err
	}
	now, err := listNodes(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return fabricOf(shape, before, now)
}

// listNodes reads all nodes.
func listNodes(ctx context.Context, c *control.Client, name string) (all []control.NodeReading, err error) {
	for n, err := range c.ListNodes(ctx, name) {
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// fabricOf makes the record of what was read.
func fabricOf(shape *nfcommsv1.GetFabricResponse, before, now []control.NodeReading) (*fabricRecord, error) {
	torus, err := topology.ParseTorus(shape.GetTorus())
	if err != nil {
		return nil, err
	}
	if len(now) != torus.Nodes() {
		return nil, fmt.Errorf("the server lists %d nodes of a torus %v", len(now), torus)
	}
	l := shape.GetLinks()
	s := &topology.Snapshot{Torus: torus, Nodes: make([]topology.NodeState, len(now))}
	r := &fabricRecord{
		Device: deviceID(shape.GetName()), kindRecord: kindRecord{deviceKind(shape.GetDeviceKind())}, Torus: torus.String(), Node: shape.GetNode(), Nodes: []nodeRecord{}, Routes: []routeRecord{},
		Links: linkCounts{Normal: l.GetNormal(), Sick: l.GetSick(), Broken: l.GetBroken(), Unknown: l.GetUnknown()},
		drawn: s,
	}
	for i, n := range now {
		s.Nodes[i].Word = abi.Diagnostic(n.GetDiagnostic().GetWord())
		node := nodeRecord{
			Node: n.GetAddress(), Alive: n.GetAlive(), Problems: append([]string{}, topology.Diagnose(s.Nodes[i].Word)...),
			Forwarded: n.GetForwarded(), Detours: n.GetDetours(), Unreachable: n.GetUnreachable(),
			Windows: n.GetWindows(), WindowBytes: n.GetWindowBytes(),
			PageHits: n.GetPageHits(), PageMisses: n.GetPageMisses(), Links: []linkEndRecord{},
		}
		for j, end := range n.GetLinks() {
			rate := rateOf(before, now, i, j)
			node.Links = append(node.Links, linkEndOf(end, rate))
			if direction, err := topology.ParseLink(end.GetDirection()); err == nil {
				drawn := &s.Nodes[i].Links[direction]
				drawn.Errors, drawn.Repeats = end.GetErrors(), end.GetPacketsRepeated()
				drawn.Medium = topology.Between(end.GetMedium())
				if rate != nil {
					drawn.BytesPerSecond = *rate
				}
			}
		}
		r.Nodes = append(r.Nodes, node)
	}
	for i := range r.Nodes { // a node is as well as its neighbours say of its links
		r.Nodes[i].State = s.StateOf(torus.Node(i)).String()
	}
	return r, nil
}

// rateOf is what left by a link between two readings; nil if there is only one, or
// the node began anew.
func rateOf(before, now []control.NodeReading, node, link int) *float64 {
	if len(before) != len(now) || len(before[node].GetLinks()) != len(now[node].GetLinks()) {
		return nil
	}
	a, b := before[node].GetLinks()[link].GetBytesSent(), now[node].GetLinks()[link].GetBytesSent()
	took := now[node].Time.Sub(before[node].Time).Seconds()
	if b < a || took <= 0 {
		return nil
	}
	rate := float64(b-a) / took
	return &rate
}

func linkEndOf(l *nfcommsv1.Link, rate *float64) linkEndRecord {
	return linkEndRecord{
		Link: l.GetDirection(), To: l.GetTo(), State: strings.ToLower(strings.TrimPrefix(l.GetState().String(), "STATE_")),
		BytesSent: l.GetBytesSent(), Rate: rate, Packets: l.GetPacketsSent(), Repeated: l.GetPacketsRepeated(),
		Errors: l.GetErrors(), Restarts: l.GetRestarts(), RoundTrip: seconds(l.GetRoundTrip()), Medium: l.GetMedium(),
	}
}

// addRoute asks for a way.
func (r *fabricRecord) addRoute(ctx context.Context, c *control.Client, req *nfcommsv1.GetRouteRequest) error {
	way, err := c.Fabrics.GetRoute(ctx, req)
	if err != nil {
		return err
	}
	from, err := topology.ParseNode(req.GetFrom())
	if err != nil {
		return err
	}
	to, err := topology.ParseNode(req.GetTo())
	if err != nil {
		return err
	}
	record, drawn := routeRecord{From: req.GetFrom(), To: req.GetTo(), Reachable: way.GetReachable(), Hops: []hopRecord{}}, topology.Route{From: from, To: to}
	for _, h := range way.GetHops() {
		l, err := topology.ParseLink(h.GetLink())
		if err != nil {
			return err
		}
		drawn.Hops = append(drawn.Hops, topology.Hop{Link: l, Detour: h.GetDetour()})
		record.Hops = append(record.Hops, hopRecord{From: h.GetFrom(), Link: h.GetLink(), To: h.GetTo(), Detour: h.GetDetour()})
	}
	r.Routes = append(r.Routes, record)
	r.drawn.Routes = append(r.drawn.Routes, drawn)
	return nil
}

// windows adds up those of all nodes.
func (r fabricRecord) windows() (n, bytes uint64) {
	for i := range r.Nodes {
		n += r.Nodes[i].Windows
		bytes += r.Nodes[i].WindowBytes
	}
	return n, bytes
}

func (r fabricRecord) table(p *printer) {
	p.printf("%s, %s, is node %s of a torus %s; links: %d normal, %d sick, %d broken, %d unknown\n",
		r.Device, kindText(r.Kind), r.Node, r.Torus, r.Links.Normal, r.Links.Sick, r.Links.Broken, r.Links.Unknown)
	if n, bytes := r.windows(); n > 0 {
		p.printf("windows of memory of nodes: %d, %s\n", n, units.Exact(bytes))
	}
	_ = r.drawn.Text(p.w) // the writer is a buffer, which keeps its error
}

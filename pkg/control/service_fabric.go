package control

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// Tests of links.
const (
	testsMost    = 4 // of a device, at a time
	testDuration = time.Second
	testLongest  = time.Minute
	testWords    = 1 << 39 // when a request names no number: more than a minute has
)

// fabricService implements nfcomms.v1.FabricService.
type fabricService struct {
	nfcommsv1.UnsafeFabricServiceServer
	s *Server
}

// fabric finds the fabric of the device that a field names.
func (v fabricService) fabric(field, name string) (*device, fabric.Fabric, error) {
	d, err := v.s.named(field, name)
	if err != nil {
		return nil, nil, err
	}
	dev, err := d.use()
	if err != nil {
		return nil, nil, err
	}
	f := fabric.Of(dev)
	if f == nil {
		return nil, nil, fmt.Errorf("%q: %w", d.name(), ErrNoFabric)
	}
	return d, f, nil
}

// GetFabric counts nodes and links.
func (v fabricService) GetFabric(ctx context.Context, req *nfcommsv1.GetFabricRequest) (*nfcommsv1.GetFabricResponse, error) {
	d, f, err := v.fabric("name", req.GetName())
	if err != nil {
		return nil, err
	}
	state, err := f.State(ctx)
	if err != nil {
		return nil, err
	}
	s := topology.Of(&state)
	nodes, links := s.Count()
	return &nfcommsv1.GetFabricResponse{
		Name: d.name(), Torus: s.Torus.String(), Node: state.Node.String(),
		NodesKnown: int32(s.Torus.Nodes() - nodes[topology.Unknown]), DeviceKind: d.kind(),
		Links: &nfcommsv1.LinkCounts{
			Normal: int32(links[topology.Normal]), Sick: int32(links[topology.Sick]),
			Broken: int32(links[topology.Broken]), Unknown: int32(links[topology.Unknown]),
		},
	}, nil
}

// nodeAt is a node of a state.
type nodeAt struct {
	s     *fabric.State
	index int
}

// key orders nodes by their index: ten digits hold any.
func (n nodeAt) key() string { return fmt.Sprintf("%010d", n.index) }

// ListNodes lists the nodes.
func (v fabricService) ListNodes(ctx context.Context, req *nfcommsv1.ListNodesRequest) (*nfcommsv1.ListNodesResponse, error) {
	d, f, err := v.fabric("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	resp := &nfcommsv1.ListNodesResponse{ReadTime: timestamppb.Now(), DeviceKind: d.kind()}
	state, err := f.State(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]nodeAt, len(state.Nodes))
	for i := range all {
		all[i] = nodeAt{&state, i}
	}
	some, next, err := page(pageOfNodes, d.id, all, nodeAt.key, req)
	if err != nil {
		return nil, err
	}
	snapshot := topology.Of(&state)
	for _, n := range some {
		resp.Nodes = append(resp.Nodes, nodeOf(snapshot, &state, n.index))
	}
	resp.NextPageToken = next
	return resp, nil
}

// nodeOf describes a node.
func nodeOf(s *topology.Snapshot, state *fabric.State, index int) *nfcommsv1.Node {
	at, n := s.Torus.Node(index), &state.Nodes[index]
	m := &nfcommsv1.Node{
		Address: at.String(), Diagnostic: diagnostic(n.Word), Alive: n.Alive,
		Forwarded: n.Forwarded, Detours: n.Detours, Unreachable: n.Unreachable,
		PageHits: n.PageHits, PageMisses: n.PageMisses, Windows: n.Windows, WindowBytes: n.WindowBytes,
	}
	for l := range topology.Links {
		to := s.Torus.Neighbour(at, l)
		if to == at {
			continue
		}
		end := &n.Links[l]
		link := &nfcommsv1.Link{
			Direction: l.String(), To: to.String(), State: linkStates[s.StateOfLink(at, l)],
			BytesSent: end.BytesSent, PacketsSent: end.Packets, PacketsRepeated: end.Repeated,
			Errors: end.Errors, Restarts: end.Restarts, Medium: end.Medium.String(),
		}
		if end.RoundTrip > 0 {
			link.RoundTrip = durationpb.New(end.RoundTrip)
		}
		m.Links = append(m.Links, link)
	}
	return m
}

// linkStates are the states of links on the wire.
var linkStates = [...]nfcommsv1.Link_State{
	topology.Normal:  nfcommsv1.Link_STATE_NORMAL,
	topology.Sick:    nfcommsv1.Link_STATE_SICK,
	topology.Broken:  nfcommsv1.Link_STATE_BROKEN,
	topology.Unknown: nfcommsv1.Link_STATE_UNKNOWN,
}

// parseNode reads a field that names a node.
func parseNode(field, text string) (abi.Node, error) {
	n, err := topology.ParseNode(text)
	if err != nil {
		err = invalid(field, "%v", err)
	}
	return n, err
}

// linkOf returns the link of a request: one that leads to another node.
func linkOf(ctx context.Context, f fabric.Fabric, req interface {
	GetNode() string
	GetLink() string
}) (abi.Node, topology.Link, error) {
	n, err := parseNode("node", req.GetNode())
	if err != nil {
		return 0, 0, err
	}
	l, err := topology.ParseLink(req.GetLink())
	if err != nil {
		return 0, 0, invalid("link", "%v", err)
	}
	state, err := f.State(ctx)
	if err != nil {
		return 0, 0, err
	}
	torus := topology.Of(&state).Torus
	if torus.Contains(n) && torus.Neighbour(n, l) == n {
		return 0, 0, invalid("link", "%v leads to node %v itself: that side of the torus %v is 1", l, n, torus)
	}
	return n, l, nil
}

// GetRoute asks the nodes on the way.
func (v fabricService) GetRoute(ctx context.Context, req *nfcommsv1.GetRouteRequest) (*nfcommsv1.GetRouteResponse, error) {
	_, f, err := v.fabric("name", req.GetName())
	if err != nil {
		return nil, err
	}
	from, err := parseNode("from", req.GetFrom())
	if err != nil {
		return nil, err
	}
	to, err := parseNode("to", req.GetTo())
	if err != nil {
		return nil, err
	}
	state, err := f.State(ctx)
	if err != nil {
		return nil, err
	}
	hops, err := f.Route(ctx, from, to)
	if err != nil {
		return nil, err
	}
	torus := topology.Of(&state).Torus
	resp := &nfcommsv1.GetRouteResponse{Reachable: len(hops) > 0 || from == to}
	for at, i := from, 0; i < len(hops); i++ {
		link := topology.Link(hops[i].Link)
		next := torus.Neighbour(at, link)
		resp.Hops = append(resp.Hops, &nfcommsv1.Hop{From: at.String(), Link: link.String(), To: next.String(), Detour: hops[i].Detour})
		at = next
	}
	return resp, nil
}

// CutLink cuts a link.
func (v fabricService) CutLink(ctx context.Context, req *nfcommsv1.CutLinkRequest) (*nfcommsv1.CutLinkResponse, error) {
	return &nfcommsv1.CutLinkResponse{}, v.cut(ctx, req, true)
}

// MendLink mends a link.
func (v fabricService) MendLink(ctx context.Context, req *nfcommsv1.MendLinkRequest) (*nfcommsv1.MendLinkResponse, error) {
	return &nfcommsv1.MendLinkResponse{}, v.cut(ctx, req, false)
}

// cut cuts or mends the link of a request.
func (v fabricService) cut(ctx context.Context, req interface {
	GetName() string
	GetNode() string
	GetLink() string
}, cut bool) error {
	_, f, err := v.fabric("name", req.GetName())
	if err != nil {
		return err
	}
	n, l, err := linkOf(ctx, f, req)
	if err != nil {
		return err
	}
	return f.CutLink(ctx, n, int(l), cut)
}

// TestLink tests a link for a time, or for so many words.
func (v fabricService) TestLink(ctx context.Context, req *nfcommsv1.TestLinkRequest) (*nfcommsv1.TestLinkResponse, error) {
	d, f, err := v.fabric("name", req.GetName())
	if err != nil {
		return nil, err
	}
	n, l, err := linkOf(ctx, f, req)
	if err != nil {
		return nil, err
	}
	duration := testDuration
	if req.GetDuration() != nil {
		duration = req.GetDuration().AsDuration()
	}
	if duration <= 0 || duration > testLongest {
		return nil, invalid("duration", "%v: want more than none, at most %v", duration, testLongest)
	}
	words := req.GetWords()
	or(&words, testWords)
	select {
	case d.tests <- struct{}{}:
		defer func() { <-d.tests }()
	default:
		return nil, fmt.Errorf("%d links of the device are being tested: %w", testsMost, nfcomms.ErrBusy)
	}
	begin := time.Now()
	within, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	result, err := f.TestLink(within, n, int(l), words)
	if err != nil && (within.Err() == nil || ctx.Err() != nil) {
		return nil, err
	}
	return &nfcommsv1.TestLinkResponse{
		Words: result.Words, WrongWords: result.Wrong, Took: durationpb.New(time.Since(begin)), DeviceKind: d.kind(),
	}, nil
}

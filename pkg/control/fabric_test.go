package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// serveTorus serves a node of a torus, once all links are up.
func serveTorus(t testing.TB, torus string) *control.Client {
	srv, c := serve(t, quick)
	require.NoError(t, srv.Open(background(t), "nic0", "sim:?torus="+torus))
	require.Eventually(t, func() bool {
		f, err := c.Fabrics.GetFabric(background(t), &nfcommsv1.GetFabricRequest{Name: nic0})
		return err == nil && f.GetLinks().GetBroken()+f.GetLinks().GetUnknown() == 0
	}, time.Minute, time.Millisecond)
	return c
}

// TestFabricIsShown: shape, nodes page by page, ways, and what a cut changes.
func TestFabricIsShown(t *testing.T) {
	c, ctx := serveTorus(t, "3x2x1"), background(t)
	f, err := c.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: nic0})
	require.NoError(t, err)
	require.Equal(t, "3x2x1", f.GetTorus())
	require.Equal(t, "0.0.0", f.GetNode())
	require.EqualValues(t, 6, f.GetNodesKnown())
	require.EqualValues(t, 6+6, f.GetLinks().GetNormal(), "x: a ring of three in each row; y: both ways around a side of two")

	var nodes []string
	for n, err := range c.ListNodes(ctx, nic0) {
		require.NoError(t, err)
		require.True(t, n.GetAlive())
		require.Len(t, n.GetLinks(), 4)
		require.WithinDuration(t, time.Now(), n.Time, time.Hour)
		nodes = append(nodes, n.GetAddress())
	}
	require.Equal(t, []string{"0.0.0", "1.0.0", "2.0.0", "0.1.0", "1.1.0", "2.1.0"}, nodes)
	page, err := c.Fabrics.ListNodes(ctx, &nfcommsv1.ListNodesRequest{Parent: nic0, PageSize: 4})
	require.NoError(t, err)
	page, err = c.Fabrics.ListNodes(ctx, &nfcommsv1.ListNodesRequest{Parent: nic0, PageToken: page.GetNextPageToken()})
	require.NoError(t, err)
	require.Len(t, page.GetNodes(), 2)
	require.Equal(t, "1.1.0", page.GetNodes()[0].GetAddress())

	route := &nfcommsv1.GetRouteRequest{Name: nic0, From: "0.0.0", To: "1.1.0"}
	way, err := c.Fabrics.GetRoute(ctx, route)
	require.NoError(t, err)
	require.True(t, way.GetReachable())
	require.Len(t, way.GetHops(), 2)
	require.Equal(t, "0.0.0 x+ 1.0.0", way.GetHops()[0].GetFrom()+" "+way.GetHops()[0].GetLink()+" "+way.GetHops()[0].GetTo())
	way, err = c.Fabrics.GetRoute(ctx, &nfcommsv1.GetRouteRequest{Name: nic0, From: "1.0.0", To: "1.0.0"})
	require.NoError(t, err)
	require.True(t, way.GetReachable())
	require.Empty(t, way.GetHops())

	_, err = c.Fabrics.CutLink(ctx, &nfcommsv1.CutLinkRequest{Name: nic0, Node: "0.0.0", Link: "x+"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		f, err := c.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: nic0})
		require.NoError(t, err)
		way, err := c.Fabrics.GetRoute(ctx, route)
		require.NoError(t, err)
		return f.GetLinks().GetBroken() == 1 && len(way.GetHops()) > 0 && way.GetHops()[0].GetLink() != "x+"
	}, time.Minute, time.Millisecond)
	_, err = c.Fabrics.MendLink(ctx, &nfcommsv1.MendLinkRequest{Name: nic0, Node: "1.0.0", Link: "x-"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		f, err := c.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: nic0})
		return err == nil && f.GetLinks().GetBroken() == 0
	}, time.Minute, time.Millisecond)
}

// TestLinksAreTested: by words and by time; a link that is down says so.
func TestLinksAreTested(t *testing.T) {
	c, ctx := serveTorus(t, "2x1x1"), background(t)
	req := &nfcommsv1.TestLinkRequest{Name: nic0, Node: "0.0.0", Link: "x+", Words: 10_000, Duration: durationpb.New(time.Minute)}
	r, err := c.Fabrics.TestLink(ctx, req)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.GetWords(), req.Words)
	require.Zero(t, r.GetWrongWords())
	req.Words, req.Duration = 0, durationpb.New(10*time.Millisecond)
	r, err = c.Fabrics.TestLink(ctx, req)
	require.NoError(t, err, "its time is over: that is its end")
	require.GreaterOrEqual(t, r.GetTook().AsDuration(), 10*time.Millisecond)
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	req.Duration = durationpb.New(time.Minute)
	_, err = c.Fabrics.TestLink(short, req)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = c.Fabrics.CutLink(ctx, &nfcommsv1.CutLinkRequest{Name: nic0, Node: "0.0.0", Link: "x+"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the server ends what its client gave up in its own time
		_, err = c.Fabrics.TestLink(ctx, req)
		return !errors.Is(err, nfcomms.ErrBusy)
	}, time.Minute, time.Millisecond)
	require.ErrorIs(t, err, nfcomms.ErrLinkDown)
}

// TestBadFabricRequests: each is one typed error.
func TestBadFabricRequests(t *testing.T) {
	c, ctx := serveTorus(t, "2x1x1"), background(t)
	cut := func(node, link string) error {
		_, err := c.Fabrics.CutLink(ctx, &nfcommsv1.CutLinkRequest{Name: nic0, Node: node, Link: link})
		return err
	}
	for _, r := range [][2]string{{"", "x+"}, {"0.0", "x+"}, {"2.0.0", "x+"}, {"0.0.300", "x+"}, {"0.0.0", "y+"}, {"0.0.0", ""}, {"0.0.0", "w+"}} {
		require.ErrorIs(t, cut(r[0], r[1]), nfcomms.ErrInvalid, r)
	}
	for _, d := range []time.Duration{-1, time.Minute + 1} {
		_, err := c.Fabrics.TestLink(ctx, &nfcommsv1.TestLinkRequest{Name: nic0, Node: "0.0.0", Link: "x+", Duration: durationpb.New(d)})
		require.ErrorIs(t, err, nfcomms.ErrInvalid)
	}
	_, err := c.Fabrics.TestLink(ctx, &nfcommsv1.TestLinkRequest{Name: nic0, Node: "0.0.0", Link: "x+", Words: 1 << 60})
	require.ErrorIs(t, err, nfcomms.ErrInvalid)
	for _, r := range [][2]string{{"0.0.0", "9.9.9"}, {"9.9.9", "0.0.0"}, {"a", "0.0.0"}, {"0.0.0", ""}} {
		_, err = c.Fabrics.GetRoute(ctx, &nfcommsv1.GetRouteRequest{Name: nic0, From: r[0], To: r[1]})
		require.ErrorIs(t, err, nfcomms.ErrInvalid, r)
	}
	_, err = c.Fabrics.ListNodes(ctx, &nfcommsv1.ListNodesRequest{Parent: nic0, PageToken: "none"})
	require.ErrorIs(t, err, control.ErrPageToken)

	_, alone := serveSim(t, quick)
	_, err = alone.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: nic0})
	require.ErrorIs(t, err, control.ErrNoFabric)
	_, err = alone.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: "devices/none"})
	require.ErrorIs(t, err, control.ErrNoDevice)
}

// fakeFabric is a fabric with the states that a test wants.
type fakeFabric struct {
	bridge.Fabric
	state bridge.FabricState
	test  func(ctx context.Context) (bridge.LinkTest, error)
}

func (f *fakeFabric) State(context.Context) (bridge.FabricState, error) { return f.state, nil }
func (f *fakeFabric) TestLink(ctx context.Context, _ abi.Node, _ int, _ uint64) (bridge.LinkTest, error) {
	return f.test(ctx)
}

// Fabric is the one that a test has set, if it has.
func (f *flaky) Fabric() bridge.Fabric {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fabric == nil {
		return nil
	}
	return f.fabric
}

// TestStatesOfAFabric: a torus of several pages, as long as one may be, with parts in every state.
func TestStatesOfAFabric(t *testing.T) {
	c, dev := serveFlaky(t, quick)
	ctx := background(t)
	const nodes = 32 * 9 * 9
	fake := &fakeFabric{state: bridge.FabricState{Side: [3]int{32, 9, 9}, Nodes: make([]bridge.FabricNodeState, nodes)}}
	for i := range fake.state.Nodes[1:] {
		fake.state.Nodes[1+i].Word = 1 << 31
	}
	fake.state.Nodes[1].Word = 1<<31 | abi.Diagnostic(abi.Broken)<<abi.DiagXPlus | abi.Diagnostic(abi.Sick)<<abi.DiagYPlus
	dev.set(func(f *flaky) { f.fabric = fake })
	r, err := c.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: nic0})
	require.NoError(t, err)
	require.EqualValues(t, nodes-1, r.GetNodesKnown())
	require.EqualValues(t, 1, r.GetLinks().GetBroken())
	require.EqualValues(t, 1, r.GetLinks().GetSick())
	require.EqualValues(t, 3*nodes-2, r.GetLinks().GetNormal())
	n := 0
	for node, err := range c.ListNodes(ctx, nic0) {
		require.NoError(t, err)
		if n++; n == 2 {
			require.Equal(t, "1.0.0", node.GetAddress())
			require.Equal(t, nfcommsv1.Link_STATE_BROKEN, node.GetLinks()[0].GetState())
			require.Equal(t, "2.0.0", node.GetLinks()[0].GetTo())
		}
	}
	require.Equal(t, nodes, n)
}

// TestTestsAreBounded: four at a time; one more is refused, and one that fails says
// why although its time is not over.
func TestTestsAreBounded(t *testing.T) {
	c, dev := serveFlaky(t, quick)
	ctx := background(t)
	begun, end := make(chan struct{}), make(chan struct{})
	fake := &fakeFabric{test: func(context.Context) (bridge.LinkTest, error) {
		begun <- struct{}{}
		<-end
		return bridge.LinkTest{Words: 7}, bridge.ErrLinkDown
	}}
	dev.set(func(f *flaky) { f.fabric = fake })
	req := &nfcommsv1.TestLinkRequest{Name: nic0, Node: "0.0.0", Link: "x+", Duration: durationpb.New(time.Minute)}
	failed := make(chan error)
	for range 4 {
		go func() { _, err := c.Fabrics.TestLink(ctx, req); failed <- err }()
		<-begun
	}
	_, err := c.Fabrics.TestLink(ctx, req)
	require.ErrorIs(t, err, nfcomms.ErrBusy)
	close(end)
	for range 4 {
		require.ErrorIs(t, <-failed, nfcomms.ErrLinkDown)
	}
}

// TestChannelsOfNodes: a channel to another node is named, listed, watched and used as
// one to the device's own, and the two with one number are two.
func TestChannelsOfNodes(t *testing.T) {
	c, ctx := serveTorus(t, "3x1x1"), background(t)
	far := control.ChannelName("nic0", fabric.Target(fabric.At(2, 0, 0), nfcomms.Loopback))
	require.Equal(t, "devices/nic0/channels/2.0.0/1", far)
	for _, name := range []string{far, loopback} {
		require.Equal(t, name, openChannel(t, c, name).GetName())
		require.NoError(t, c.Send(ctx, name, []byte(name)))
	}
	for _, name := range []string{far, loopback} {
		got, err := c.Receive(ctx, name)
		require.NoError(t, err)
		require.Equal(t, name, string(got))
	}
	var listed []string
	for ch, err := range c.ListChannels(ctx, nic0) {
		require.NoError(t, err)
		require.EqualValues(t, nfcomms.Loopback, ch.GetTarget())
		require.EqualValues(t, 1, ch.GetStats().GetDirectH2D().GetMessages())
		listed = append(listed, ch.GetName()+" at "+ch.GetNode())
	}
	require.Equal(t, []string{loopback + " at ", far + " at 2.0.0"}, listed)

	_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: far})
	require.ErrorIs(t, err, nfcomms.ErrBusy)
	var op *nfcomms.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "2.0.0/1", op.Target.String(), "the client has the whole id")
	closed, err := c.Channels.CloseChannel(ctx, &nfcommsv1.CloseChannelRequest{Name: far})
	require.NoError(t, err)
	require.Equal(t, far, closed.GetChannel().GetName())
	_, err = c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: "devices/nic0/channels/3.0.0/1"})
	require.ErrorIs(t, err, nfcomms.ErrNotSubscribed)
	require.ErrorContains(t, err, "3.0.0")
}

// TestProcessesOfNodes: programs run at other nodes, where they have names, targets and
// an end of their own.
func TestProcessesOfNodes(t *testing.T) {
	c, ctx := serveTorus(t, "3x1x1"), background(t)
	start := func(program, node string) (*nfcommsv1.Process, error) {
		r, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{Name: "devices/nic0/programs/" + program, FirstTarget: 100, Node: node})
		return r.GetProcess(), err
	}
	stop := func(name string) error {
		_, err := c.Devices.StopProgram(ctx, &nfcommsv1.StopProgramRequest{Name: name})
		return err
	}
	var want []string
	for _, node := range []string{"2.0.0", "0.0.0", "1.0.0"} { // with one number each
		p, err := start("hold", node)
		require.NoError(t, err)
		if node == "0.0.0" {
			node = ""
		}
		require.Equal(t, node, p.GetNode())
		want = append(want, strings.TrimPrefix(p.GetName(), "devices/")+" hold")
	}
	want[0], want[1], want[2] = want[1], want[2], want[0]
	require.Equal(t, want, running(t, c, 2))
	require.Regexp(t, `^nic0/processes/2\.0\.0/\d+ hold$`, want[2])
	openChannel(t, c, "devices/nic0/channels/2.0.0/100")

	name := "devices/" + strings.TrimSuffix(want[2], " hold")
	require.NoError(t, stop(name))
	require.ErrorIs(t, stop(name), control.ErrNoProcess)
	require.Equal(t, want[:2], running(t, c, 0))
	_, err := c.Receive(ctx, "devices/nic0/channels/2.0.0/100")
	require.ErrorIs(t, err, nfcomms.ErrClosed)

	_, err = start("hold", "1.0.0")
	require.ErrorIs(t, err, nfcomms.ErrBusy, "its target is held")
	for _, node := range []string{"3.0.0", "1.0", "1.0.0/1"} {
		_, err = start("hold", node)
		require.ErrorIs(t, err, nfcomms.ErrInvalid, node)
	}
	for _, name := range []string{"devices/nic0/processes/1.0/1", "devices/nic0/processes/1.0.0/", "devices/nic0/processes/1.0.0/1/1", "devices/nic0/processes/1.0.0/01"} {
		require.ErrorIs(t, stop(name), nfcomms.ErrInvalid, name)
	}
	_, err = c.Devices.ResetDevice(ctx, &nfcommsv1.ResetDeviceRequest{Name: nic0})
	require.NoError(t, err)
	require.Empty(t, running(t, c, 0), "a reset resets the nodes")
}

// TestStartWithoutAFabric: a device that is no node says so.
func TestStartWithoutAFabric(t *testing.T) {
	_, c := serveSim(t, quick)
	_, err := c.Devices.StartProgram(background(t), &nfcommsv1.StartProgramRequest{Name: "devices/nic0/programs/hold", Node: "1.0.0"})
	require.ErrorIs(t, err, nfcomms.ErrNotSupported)
}

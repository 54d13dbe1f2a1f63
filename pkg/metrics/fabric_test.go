package metrics

import (
	"context"
	"fmt"
	"iter"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// fakeFabric is a fabric that is as the test wants.
type fakeFabric struct {
	bridge.Fabric
	state bridge.FabricState
}

func (f *fakeFabric) State(context.Context) (bridge.FabricState, error) { return f.state, nil }

// Fabric is what a test has set.
func (f *fake) Fabric() bridge.Fabric {
	if f.fabric == nil {
		return nil // not an interface that holds nil
	}
	return f.fabric
}

// newFakeTorus opens a fake that is a node of a torus whose nodes are well.
func newFakeTorus(t testing.TB, x, y, z int) (*fakeFabric, *nfcomms.Device) {
	f, dev := newFake(t)
	f.fabric = &fakeFabric{state: bridge.FabricState{Side: [3]int{x, y, z}, Nodes: make([]bridge.FabricNodeState, x*y*z)}}
	for i := range f.fabric.state.Nodes {
		f.fabric.state.Nodes[i].Word = 1 << 31
	}
	return f.fabric, dev
}

// TestFabrics: states are counted, counters added up; a node that begins anew takes
// nothing back; every metric is documented.
func TestFabrics(t *testing.T) {
	f, dev := newFakeTorus(t, 3, 1, 1)
	_, alone := newFake(t)
	c := NewFabricCollector(func() iter.Seq2[string, *nfcomms.Device] {
		return func(yield func(string, *nfcomms.Device) bool) {
			_ = yield("a", dev) && yield("alone", alone) && yield("closed", nil)
		}
	})
	f.state.Nodes[1].Word |= abi.Diagnostic(abi.Broken)<<abi.DiagXPlus | abi.Diagnostic(abi.Sick)<<abi.DiagXMinus
	f.state.Nodes[2].Word = 0
	f.state.Nodes[0].Links[0] = bridge.FabricLinkState{BytesSent: 1000, Packets: 10, Repeated: 2, Errors: 3, Restarts: 1}
	f.state.Nodes[1] = bridge.FabricNodeState{Word: f.state.Nodes[1].Word, Forwarded: 7, Detours: 5, Unreachable: 4, Blocked: 1500 * time.Millisecond}
	got := scrapeOnce(t, c)
	at := func(name string, labels ...string) float64 {
		return value(t, got, "nfcomms_fabric_"+name, append([]string{"device", "a"}, labels...)...)
	}
	require.EqualValues(t, 2, at("nodes", "state", "normal"))
	require.EqualValues(t, 1, at("nodes", "state", "unknown"))
	require.EqualValues(t, 1, at("links", "state", "broken"))
	require.EqualValues(t, 1, at("links", "state", "sick"))
	require.EqualValues(t, 1, at("links", "state", "normal"))
	require.EqualValues(t, 1000, at("link_bytes_total"))
	require.EqualValues(t, 4, at("unreachable_packets_total"))
	require.EqualValues(t, 5, at("detour_packets_total"))
	require.EqualValues(t, 1.5, at("head_of_line_seconds_total"))

	f.state.Nodes[0].Links[0].BytesSent = 0
	got = scrapeOnce(t, c)
	require.EqualValues(t, 1000, at("link_bytes_total"), "the node is dead")
	f.state.Nodes[0].Links[0].BytesSent = 300
	f.state.Nodes[0].PageHits, f.state.Nodes[1].PageMisses = 5, 6
	f.state.Nodes[0].Windows, f.state.Nodes[0].WindowBytes = 1, 96
	f.state.Nodes[1].Windows, f.state.Nodes[1].WindowBytes = 2, 4000
	got = scrapeOnce(t, c)
	require.EqualValues(t, 5, at("window_page_hits_total"))
	require.EqualValues(t, 3, at("windows"))
	require.EqualValues(t, 4096, at("window_bytes"))
	f.state.Nodes[1].Windows, f.state.Nodes[1].WindowBytes = 0, 0
	got = scrapeOnce(t, c)
	require.EqualValues(t, 1, at("windows"), "what there is now")
	require.EqualValues(t, 96, at("window_bytes"))
	require.EqualValues(t, 6, at("window_page_misses_total"))
	require.EqualValues(t, 1300, at("link_bytes_total"), "it began anew")

	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	n, err := testutil.GatherAndCount(reg)
	require.NoError(t, err)
	require.Equal(t, 21, n)
	page, err := os.ReadFile("../../docs/fabric.md")
	require.NoError(t, err)
	for _, d := range fabricDescs.all {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		require.Contains(t, string(page), "`"+name+"`")
	}
}

// TestFabricsAreBounded: as many series for the largest torus, and no more for many
// devices.
func TestFabricsAreBounded(t *testing.T) {
	_, dev := newFakeTorus(t, 32, 32, 32)
	_, small := newFakeTorus(t, 2, 1, 1)
	c := NewFabricCollector(func() iter.Seq2[string, *nfcomms.Device] {
		return func(yield func(string, *nfcomms.Device) bool) {
			if !yield("0", dev) {
				return
			}
			for i := range 100 {
				if !yield(fmt.Sprintf("%c\xff%d", 'z'-i%2, i), small) {
					return
				}
			}
		}
	})
	got := scrapeOnce(t, c)
	require.EqualValues(t, 32*32*32, value(t, got, "nfcomms_fabric_nodes", "device", "0", "state", "normal"))
	require.EqualValues(t, 3*32*32*32, value(t, got, "nfcomms_fabric_links", "device", "0", "state", "normal"))
	require.EqualValues(t, 2*(100-fabricsMost+1), value(t, got, "nfcomms_fabric_nodes", "device", overflow, "state", "normal"))
	n, err := testutil.GatherAndCount(func() *prometheus.Registry { r := prometheus.NewRegistry(); r.MustRegister(c); return r }())
	require.NoError(t, err)
	require.Equal(t, 21*(fabricsMost+1), n)
}

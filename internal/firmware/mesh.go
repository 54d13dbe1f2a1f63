//go:build cgo

package firmware

/*
#include <stdlib.h>
#include "port/mesh.h"
*/
import "C"

import (
	"math"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// The limits of Go are those of the firmware, or this does not build.
var (
	_ = [1]struct{}{}[C.NFC_LINK_VERSION-MeshLinkVersion]
	_ = [1]struct{}{}[C.NFC_SIDE_MAX-MeshSideMax]
	_ = [1]struct{}{}[C.NFC_MESH_NODES_MAX-MeshNodesMax]
)

// Mesh is nodes of a fabric on threads of this process, joined by wires in memory.
// Its methods are safe for concurrent use, except Step and Kill, which exclude
// themselves; nothing may follow Close.
type Mesh struct {
	m     *C.struct_nfc_mesh
	nodes int
}

func (c *MeshConfig) native() (n C.struct_nfc_mesh_config, ok bool) {
	w, ok := words(c.Side[0], c.Side[1], c.Side[2], c.Threads, c.Depth, c.Buffer, c.Period, c.Window, c.WireWords, c.Slack)
	if !ok || min(c.Spin, c.Ask, c.HostTimeout, c.Wait, c.CreditIdle, c.Beat, c.Retry, c.Silence, c.Delay) < 0 {
		return n, false
	}
	n.node.torus.side = [3]C.uint32_t{w[0], w[1], w[2]}
	n.threads = w[3]
	n.node.link.depth, n.node.link.buffer, n.node.link.period, n.node.link.window = w[4], w[5], w[6], w[7]
	n.wire.words, n.wire.slack = w[8], w[9]
	if c.Classic {
		n.node.link.flow = C.NFC_FLOW_CLASSIC
	}
	n.spin_ns, n.node.host_ns, n.ask_ns = C.uint64_t(c.Spin), C.uint64_t(c.HostTimeout), C.uint64_t(c.Ask)
	n.node.link.wait_ns, n.node.link.credit_ns = C.uint64_t(c.Wait), C.uint64_t(c.CreditIdle)
	n.node.link.beat_ns, n.node.link.retry_ns = C.uint64_t(c.Beat), C.uint64_t(c.Retry)
	n.node.link.silence_ns = C.uint64_t(c.Silence)
	n.wire.word_ps, n.wire.delay_ns = C.uint64_t(c.WordPS), C.uint64_t(c.Delay)
	n.whole = C.bool(c.Whole)
	return n, true
}

// NewMesh starts nodes. The error is abi.ErrInvalid for a shape that makes no sense,
// or for which there is no memory.
func NewMesh(c MeshConfig) (*Mesh, abi.Status) {
	n, ok := c.native()
	if !ok {
		return nil, abi.ErrInvalid
	}
	nodes := c.Side[0] * c.Side[1] * c.Side[2]
	var here *C.uint8_t
	if c.Here != nil {
		if len(c.Here) != nodes {
			return nil, abi.ErrInvalid
		}
		flags := make([]C.uint8_t, nodes)
		for i, h := range c.Here {
			if h {
				flags[i] = 1
			}
		}
		here = &flags[0]
	}
	m := C.nfc_mesh_new(&n, here)
	if m == nil {
		return nil, abi.ErrInvalid
	}
	C.nfc_mesh_far(m)
	return &Mesh{m: m, nodes: nodes}, abi.OK
}

// Close ends all nodes.
func (m *Mesh) Close() { C.nfc_mesh_free(m.m) }

// Step lets time pass in a mesh without threads.
func (m *Mesh) Step(d, step time.Duration) {
	C.nfc_mesh_step(m.m, C.uint64_t(d), C.uint64_t(step))
}

// Send has a node send packets. False: it is not done with those before, or dead.
func (m *Mesh) Send(from int, l MeshLoad) bool {
	c := C.struct_nfc_mesh_load{to: C.uint32_t(l.To), size: C.uint32_t(l.Size), count: C.uint64_t(l.Count), kind: C.NFC_MESH_DATA}
	if l.To < 0 {
		c.to = C.NFC_MESH_ALL
	}
	if l.Ping {
		c.kind = C.NFC_MESH_PING
	}
	return bool(C.nfc_mesh_send(m.m, C.uint32_t(from), &c))
}

// Done reports whether a node's packets are sent, and its pings back.
func (m *Mesh) Done(from int) bool { return bool(C.nfc_mesh_done(m.m, C.uint32_t(from))) }

// Pings returns how long each of the last pings of a node took, there and back; nil
// while they are under way.
func (m *Mesh) Pings(from, count int) []time.Duration {
	if count < 1 {
		return nil
	}
	ns := make([]C.uint64_t, count)
	n := C.nfc_mesh_pings(m.m, C.uint32_t(from), &ns[0], C.uint64_t(count))
	out := make([]time.Duration, int(n))
	for i := range out {
		out[i] = time.Duration(ns[i])
	}
	return out
}

// Cut cuts a link in both directions, or mends it.
func (m *Mesh) Cut(node, link int, cut bool) {
	C.nfc_mesh_cut(m.m, C.uint32_t(node), C.uint32_t(link), C.bool(cut))
}

// Kill ends a node, or starts it anew. Silent: no link of it hangs up.
func (m *Mesh) Kill(node int, dead, silent bool) {
	C.nfc_mesh_kill(m.m, C.uint32_t(node), C.bool(dead), C.bool(silent))
}

// chance is a probability as wires have it.
func chance(p float64) C.uint32_t {
	return C.uint32_t(min(max(p, 0), 1) * math.MaxUint32)
}

// Break sets what a link does to words that leave a node.
func (m *Mesh) Break(node, link int, f MeshFaults) {
	c := C.struct_nfc_wire_faults{
		seed: C.uint64_t(f.Seed), flip: chance(f.Flip), drop: chance(f.Drop),
		repeat: chance(f.Repeat), stall: chance(f.Stall), stall_ns: C.uint64_t(f.StallFor),
	}
	C.nfc_mesh_break(m.m, C.uint32_t(node), C.uint32_t(link), &c)
}

// Test has a link that is up send so many bursts of MeshTestWords between packets, in
// place of those that are left.
func (m *Mesh) Test(node, link int, bursts uint32) {
	C.nfc_mesh_test(m.m, C.uint32_t(node), C.uint32_t(link), C.uint32_t(bursts))
}

// Sense sets what a node's sensors read.
func (m *Mesh) Sense(node int, d abi.Diagnostic) {
	C.nfc_mesh_sense(m.m, C.uint32_t(node), C.uint32_t(d))
}

// Host shows that a node's host is there.
func (m *Mesh) Host(node int) { C.nfc_mesh_host(m.m, C.uint32_t(node)) }

// Read returns what a node counted.
func (m *Mesh) Read(node int) MeshState {
	var c C.struct_nfc_mesh_state
	C.nfc_mesh_read(m.m, C.uint32_t(node), &c)
	s := MeshState{
		Alive: bool(c.alive), Sent: uint64(c.count[C.NFC_MESH_SENT]), Came: uint64(c.count[C.NFC_MESH_CAME]),
		Bytes: uint64(c.count[C.NFC_MESH_BYTES]), Changed: uint64(c.count[C.NFC_MESH_CHANGED]),
		Doubled: uint64(c.count[C.NFC_MESH_DOUBLED]), Refused: uint64(c.count[C.NFC_MESH_REFUSED]),
		Forwarded: uint64(c.node[C.NFC_NODE_FORWARDED]), Detours: uint64(c.node[C.NFC_NODE_DETOURS]),
		Unreachable: uint64(c.node[C.NFC_NODE_UNREACHABLE] + c.node[C.NFC_NODE_HOPS]),
		Blocked:     time.Duration(c.node[C.NFC_NODE_BLOCKED_NS]),
	}
	s.Access = MeshAccesses{
		Begun: uint64(c.rma[C.NFC_RMA_BEGUN]),
		Done:  uint64(c.rma[C.NFC_RMA_OPS]), Failed: uint64(c.rma[C.NFC_RMA_FAILED]), Bytes: uint64(c.rma[C.NFC_RMA_BYTES]),
		Repeated: uint64(c.rma[C.NFC_RMA_REPEATED]), Served: uint64(c.rma[C.NFC_RMA_SERVED]),
		Denied: uint64(c.rma[C.NFC_RMA_REFUSED]), Doubles: uint64(c.rma[C.NFC_RMA_DOUBLES]),
		Stale: uint64(c.rma[C.NFC_RMA_STALE]), Malformed: uint64(c.rma[C.NFC_RMA_MALFORMED]),
		Crowded: uint64(c.rma[C.NFC_RMA_CROWDED]), Hits: uint64(c.hits), Misses: uint64(c.misses),
		Windows: uint64(c.windows), WindowBytes: uint64(c.window_bytes),
	}
	for i := range s.Links {
		l := &c.link[i]
		s.Links[i] = MeshLink{
			Joined: bool(l.joined), Up: l.state == C.NFC_LINK_UP, Level: abi.Level(l.level),
			Window: int(l.window), RoundTrip: time.Duration(l.rtt_ns),
			WordsSent: uint64(l.count[C.NFC_LINK_WORDS_SENT]), WordsTaken: uint64(l.count[C.NFC_LINK_WORDS_TAKEN]),
			BytesSent: uint64(l.count[C.NFC_LINK_BYTES_SENT]), BytesReceived: uint64(l.count[C.NFC_LINK_BYTES_RECEIVED]),
			Packets: uint64(l.count[C.NFC_LINK_SENT]), Repeated: uint64(l.count[C.NFC_LINK_REPEATED]),
			Errors: uint64(l.count[C.NFC_LINK_BAD_PACKETS] + l.count[C.NFC_LINK_BAD_CONTROLS] +
				l.count[C.NFC_LINK_BAD_CREDITS] + l.count[C.NFC_LINK_TIMEOUTS]),
			Restarts: uint64(l.count[C.NFC_LINK_RESTARTS]), Refused: uint64(l.count[C.NFC_LINK_REFUSED]),
			Tested: uint64(l.count[C.NFC_LINK_TESTED]), TestWrong: uint64(l.count[C.NFC_LINK_TEST_WRONG]),
		}
	}
	return s
}

// View returns the diagnostic words of all nodes as a node knows them.
func (m *Mesh) View(node int) []abi.Diagnostic {
	c := make([]C.uint32_t, m.nodes)
	C.nfc_mesh_view(m.m, C.uint32_t(node), &c[0])
	out := make([]abi.Diagnostic, m.nodes)
	for i := range out {
		out[i] = abi.Diagnostic(c[i])
	}
	return out
}

// Route returns the next link of a packet that arrived at a node by a link, negative: it
// is of that node. Detour: it has left dimension order, before or there. False:
// there is no route, or it has arrived.
func (m *Mesh) Route(node, from, to, cameBy int, detour bool) (link int, detours, ok bool) {
	by, vc := C.uint32_t(C.NFC_LINKS), C.uint32_t(C.NFC_VC_FIRST)
	if cameBy >= 0 {
		by = C.uint32_t(cameBy)
	}
	if detour {
		vc = C.NFC_VC_DETOUR
	}
	hop := C.nfc_mesh_route(m.m, C.uint32_t(node), C.uint32_t(from), C.uint32_t(to), by, vc)
	return int(hop.link), hop.vc == C.NFC_VC_DETOUR, hop.link < C.NFC_LINKS
}

// Join sets whether there is a connection behind a link to a node that is not here.
func (m *Mesh) Join(node, link int, joined bool) {
	C.nfc_mesh_join(m.m, C.uint32_t(node), C.uint32_t(link), C.bool(joined))
}

// Outgoing returns words for a node that is not here, as bytes, whole words of 16:
// they stay there until Sent says that so many bytes were sent. One goroutine at a time.
func (m *Mesh) Outgoing(node, link int) []byte {
	var n C.uint32_t
	word := C.nfc_mesh_outgoing(m.m, C.uint32_t(node), C.uint32_t(link), &n)
	return unsafe.Slice((*byte)(unsafe.Pointer(word)), wordSize*int(n))
}

// Sent gives bytes of Outgoing back, whole words.
func (m *Mesh) Sent(node, link, n int) {
	C.nfc_mesh_sent(m.m, C.uint32_t(node), C.uint32_t(link), C.uint32_t(n/wordSize))
}

// Incoming returns where bytes from there may be written, room for whole words:
// it is the caller's until Came says how many were. One goroutine at a time.
func (m *Mesh) Incoming(node, link int) []byte {
	var n C.uint32_t
	word := C.nfc_mesh_incoming(m.m, C.uint32_t(node), C.uint32_t(link), &n)
	return unsafe.Slice((*byte)(unsafe.Pointer(word)), wordSize*int(n))
}

// Came gives the node so many bytes of Incoming, whole words.
func (m *Mesh) Came(node, link, n int) {
	C.nfc_mesh_received(m.m, C.uint32_t(node), C.uint32_t(link), C.uint32_t(n/wordSize))
}

// Event returns the eventfd of a link to a node that is not here: readable when
// there may be words to send, or room for some to receive. It stays the mesh's.
func (m *Mesh) Event(node, link int) int {
	return int(C.nfc_mesh_event(m.m, C.uint32_t(node), C.uint32_t(link)))
}

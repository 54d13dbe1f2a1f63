// Package torus joins the members of a group over the nodes of a fabric.
//
//	dev, err := nfcomms.Open(ctx, "sim:?torus=4x2x1")
//	…
//	t, err := torus.Open(ctx, dev, 8)
//	…
//	defer t.Close()
//	g, err := group.Join(ctx, t, group.Options{Rank: rank, Size: 8})
//
// Each node has a process that returns what it receives, and a channel to it. A frame
// for a member travels over the fabric to the member's node, through that process, and
// back to the host: as far as channels reach, which lead from the host to nodes and not
// from one node to another.
package torus

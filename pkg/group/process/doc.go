// Package process has processes on a device as members of a group.
//
//	p, err := dev.Run(ctx, nfcomms.Program{Name: "member"})
//	…
//	g, err := group.Join(ctx, mesh, group.Options{Rank: 3, Size: 4})
//	…
//	err = process.Serve(ctx, g, p.Channels[0])
//
// The process includes nfc_group.h and makes the calls; this host makes them in its place on a
// member of its own, over the transport of that. So the other members may be goroutines, processes
// of hosts, or processes of any device of any host, and none of them sees a difference.
package process

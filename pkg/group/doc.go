// Package group lets parallel members exchange data every step: simulations,
// halo and parameter exchange, shuffles. Each member gives packages for others
// and gets the packages for itself; when a step has ended, it has ended for a
// reason that every member can act on.
//
//	mesh := group.NewMesh(4)                                    // or a Rings, between processes
//	g, err := group.Join(ctx, mesh, group.Options{Rank: rank, Size: 4})
//	…
//	defer g.Close()
//	in, err := g.Exchange(ctx, []group.Package{{Rank: 2, Data: events}})
//	for _, p := range in { … }                                  // p.Data is valid until the next call
//
// The algorithms are those of the MUSIC spike-exchange report, chosen by name
// in Options or by [Auto]; [Algorithms] lists them and docs/groups.md says when
// to use which. All hand over the same packages.
//
// A step is all or nothing for each member: [Group.Exchange] returns every
// package for it or an [*Error], which names the step and the ranks it is about.
// Where a member has ended, late or gave up, the step ends at all others; they may
// continue as a smaller group with [Group.Shrink].
//
// Members are joined by a [Transport]: a [Mesh] between goroutines, [Rings]
// between processes of one machine, a [Relayed] over other places; pkg/group/torus
// makes one of the nodes of a fabric.
package group

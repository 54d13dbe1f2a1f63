// Package mesh runs nodes of a fabric in this process: links, router and news of
// firmware/link on threads, joined by wires in memory or, with [Mesh.Connect] and
// [Listener], by connections to nodes of other processes. Its packets are its own: it
// measures and tests what channels to far targets will travel on.
package mesh

// Package topology describes devices that are joined as a torus: addresses of nodes and of their
// targets, the file that lists the nodes, and pictures of their reports. It opens nothing and
// measures nothing.
//
// A torus has up to 32 nodes a side; a node is three coordinates. [ParseTarget]
// reads "2.0.1/1042", [Parse] a fabric file, and a [Snapshot] draws itself as text.
// docs/fabric.md describes the other parts of a fabric.
package topology

//go:build cgo

package service

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/testcert"
)

// side of a torus of two dimensions.
const side = 4

// fabric is nodes that find each other by a service; each is a mesh of its own, as in a process.
type fabric struct {
	t     *testing.T
	names *nameServer
	dir   string // of the certificates that all of them show
	nodes map[int]*node
}

type node struct {
	mesh    *mesh.Mesh
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newFabric(t *testing.T, a *testcert.Authority) *fabric {
	f := &fabric{t: t, names: startNames(t), dir: t.TempDir(), nodes: make(map[int]*node)}
	f.issue(a, "*."+domain)
	t.Cleanup(func() {
		for i := range f.nodes {
			f.end(i)
		}
	})
	return f
}

// issue replaces the certificates.
func (f *fabric) issue(a *testcert.Authority, host string) {
	f.t.Helper()
	pair := a.IssueHost(f.t, host, time.Now().Add(time.Hour))
	for name, data := range map[string][]byte{"crt": pair.Cert, "key": pair.Key, "ca": testcert.Bundle(a)} {
		require.NoError(f.t, os.WriteFile(filepath.Join(f.dir, name), data, 0o600))
	}
}

func (f *fabric) files() Files {
	return Files{filepath.Join(f.dir, "crt"), filepath.Join(f.dir, "key"), filepath.Join(f.dir, "ca")}
}

// start has a node join at an address, which the name server knows then.
func (f *fabric) start(index int, address string) {
	f.t.Helper()
	s := newService(f.t, f.names)
	issued, err := Open(f.files(), s.Host, slog.New(slog.DiscardHandler))
	require.NoError(f.t, err)
	here := make([]bool, side*side)
	here[index] = true
	n := &node{}
	n.mesh, err = mesh.Open(mesh.OverConnections(mesh.Config{Side: [3]int{side, side, 1}, Here: here, Whole: true}))
	require.NoError(f.t, err)
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	require.NoError(f.t, err)
	f.names.set(s.Host(index), uint16(l.Addr().(*net.TCPAddr).Port), address)
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	id := &mesh.Identity{Issued: issued, Dial: s.Dial(mesh.DialTLS)}
	n.running.Go(func() { _ = n.mesh.Serve(ctx, mesh.TLS(l), id, nil) })
	for link := 0; link < 4; link += 2 {
		to := s.Host(n.mesh.Neighbour(index, link))
		n.running.Go(func() { _ = n.mesh.Keep(ctx, to, index, link, id, nil) })
	}
	f.nodes[index] = n
}

// end ends a node as a process that is killed.
func (f *fabric) end(index int) {
	n := f.nodes[index]
	delete(f.nodes, index)
	n.stop()
	n.mesh.Close()
	n.running.Wait()
}

// settle waits until each node knows as many as are there, and their links.
func (f *fabric) settle(want func(int, []abi.Diagnostic) bool) {
	f.t.Helper()
	for _, n := range f.nodes {
		require.NoError(f.t, n.mesh.Settle(f.t.Context(), want))
	}
}

// TestNodesFindEachOther: those of a service join whichever comes first; one that ends and comes at
// another address is the same node, and so is one whose certificate was renewed meanwhile, by another
// authority.
func TestNodesFindEachOther(t *testing.T) {
	a := testcert.New(t)
	f := newFabric(t, a)
	for i := range side * side {
		f.start(i, "127.0.0.1")
	}
	begin := time.Now()
	f.settle(mesh.Well)
	t.Logf("%d nodes found each other %v after the last one's start", len(f.nodes), time.Since(begin))

	f.end(5)
	f.settle(func(_ int, words []abi.Diagnostic) bool { return !mesh.Well(0, words) })
	f.start(5, "127.0.0.2")
	f.settle(mesh.Well)

	f.issue(testcert.New(t), "*."+domain)
	f.end(6)
	f.start(6, "127.0.0.3")
	f.settle(mesh.Well)
}

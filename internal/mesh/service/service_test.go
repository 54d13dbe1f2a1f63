package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/mesh"
)

const (
	domain  = "nf.default.svc.cluster.local"
	records = "_links._tcp." + domain
)

// newService returns the service of the test as the process nf-0 sees it.
func newService(t *testing.T, n *nameServer) *Service {
	t.Helper()
	s, index, err := Parse(records, "nf-0")
	require.NoError(t, err)
	require.Zero(t, index)
	s.Resolver = n.resolver()
	return s
}

func TestParse(t *testing.T) {
	s, index, err := Parse("_links._udp.a-b.c.", "some-nf-63")
	require.NoError(t, err)
	require.Equal(t, 63, index)
	require.Equal(t, "some-nf-7.a-b.c", s.Host(7))
	for _, bad := range [][2]string{
		{"", "nf-0"}, {"nf.c", "nf-0"}, {"_links._sctp.nf.c", "nf-0"}, {"_links._tcp.", "nf-0"}, {"_links._tcp.n f", "nf-0"},
		{"_links._tcp.nf..c", "nf-0"}, {"links._tcp.nf", "nf-0"}, {"_-._tcp.nf", "nf-0"},
		{records, ""}, {records, "nf"}, {records, "nf-"}, {records, "nf-01"}, {records, "nf-x"}, {records, "-1"}, {records, "nf-100000"}, {records, "a.b-1"},
	} {
		_, _, err := Parse(bad[0], bad[1])
		require.ErrorIs(t, err, ErrName, "%q", bad)
	}
}

// TestRecords: what a name server says may be anything; the host is found by its own records or not at all.
func TestRecords(t *testing.T) {
	n := startNames(t)
	s := newService(t, n)
	find := func() ([]string, error) { return s.Lookup(t.Context(), s.Host(1)) }
	var missing *net.DNSError
	_, err := find()
	require.ErrorAs(t, err, &missing, "the service has no records")

	n.set(s.Host(1), 7000, "127.0.0.2")
	n.set(s.Host(2), 7002, "127.0.0.3")
	n.set("other-1."+domain, 9, "127.0.0.9")
	n.set("nf-1.elsewhere", 9, "127.0.0.9")
	n.set("a b.c", 9, "127.0.0.9") // no name of a host
	all, err := find()
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.2:7000"}, all)
	n.set(s.Host(1), 7000, "127.0.0.4", "127.0.0.2", "127.0.0.4")
	all, err = find()
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.2:7000", "127.0.0.4:7000"}, all, "it moved, and the old one is not gone yet")
	s.udp = true
	all, err = find()
	require.NoError(t, err)
	require.Equal(t, "udp://127.0.0.2:7000", all[0])
	s.udp = false

	n.change(func() { n.ports = append(n.ports, record{s.Host(1), 7001}) })
	_, err = find()
	require.ErrorIs(t, err, ErrRecords, "two nodes of one number")
	n.set(s.Host(1), 0, "127.0.0.2")
	_, err = find()
	require.ErrorIs(t, err, ErrRecords, "port 0")
	n.set(s.Host(1), 7000, "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8", "127.0.0.9")
	_, err = find()
	require.ErrorIs(t, err, ErrRecords, "many addresses")
	n.set(s.Host(1), 7000)
	_, err = find()
	require.ErrorIs(t, err, ErrRecords, "it is gone, others are there")
	n.change(func() {
		n.ports = append(n.ports, record{s.Host(1), 7000})
		delete(n.hosts, s.Host(1))
	})
	_, err = find()
	require.ErrorAs(t, err, &missing, "a record without a host")
	require.True(t, missing.IsNotFound)
	s.records = "_links._tcp.nowhere"
	_, err = find()
	require.ErrorAs(t, err, &missing, "no such service")
}

// TestVeryManyRecords: of 100,000 records as many count as a message holds.
func TestVeryManyRecords(t *testing.T) {
	n := startNames(t)
	s := newService(t, n)
	n.change(func() {
		for i := range 100_000 {
			n.ports = append(n.ports, record{fmt.Sprintf("x%d.y", i), 1})
		}
	})
	_, err := s.Lookup(t.Context(), s.Host(1))
	require.ErrorIs(t, err, ErrRecords)
	n.change(func() {
		n.ports[0] = record{s.Host(1), 7000}
		n.hosts[s.Host(1)] = []string{"127.0.0.2"}
	})
	all, err := s.Lookup(t.Context(), s.Host(1))
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.2:7000"}, all)
}

// TestDialTriesEach: one address after the other, until the context ends.
func TestDialTriesEach(t *testing.T) {
	n := startNames(t)
	s := newService(t, n)
	n.set(s.Host(1), 7000, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	var tried []string
	refused := errors.New("refused")
	dial := s.Dial(func(_ context.Context, address string, _ *tls.Config) (mesh.Peer, error) {
		if tried = append(tried, address); address == "127.0.0.2:7000" {
			return nil, nil
		}
		return nil, refused
	})
	_, err := dial(t.Context(), s.Host(1), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:7000", "127.0.0.2:7000"}, tried)
	n.set(s.Host(1), 7000, "127.0.0.1", "127.0.0.3")
	_, err = dial(t.Context(), s.Host(1), nil)
	require.ErrorIs(t, err, refused)
	_, err = dial(t.Context(), s.Host(2), nil)
	require.ErrorIs(t, err, ErrRecords)
}

package service

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is a name server of the test: records of one service, and addresses of hosts.
type nameServer struct {
	address string

	mu    sync.Mutex
	ports []record
	hosts map[string][]string // by the name without the last dot
}

// recordsMost is more than a message holds.
const recordsMost = 5000

// record is what SRV says of a host.
type record struct {
	host string
	port uint16
}

// listenTwice listens over TCP and over UDP at one port. The UDP port may be another process's.
func listenTwice(t *testing.T) (net.Listener, net.PacketConn) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		socket, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, socket
		}
		require.NoError(t, l.Close())
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}

// startNames starts a name server, over UDP and TCP, until the test ends.
func startNames(t *testing.T) *nameServer {
	t.Helper()
	l, socket := listenTwice(t)
	n := &nameServer{address: l.Addr().String(), hosts: make(map[string][]string)}
	var served sync.WaitGroup
	served.Go(func() { n.serveUDP(socket) })
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { n.serveTCP(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		socket.Close()
		served.Wait()
	})
	return n
}

// resolver asks it.
func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, n.address)
	}}
}

// set says where a host is; no address: nowhere.
func (n *nameServer) set(host string, port uint16, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var rest []record
	for _, r := range n.ports {
		if r.host != host {
			rest = append(rest, r)
		}
	}
	if n.ports = rest; len(addresses) > 0 {
		n.ports = append(n.ports, record{host, port})
	}
	n.hosts[host] = addresses
}

// change has the server say something else; no question is answered meanwhile.
func (n *nameServer) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

func (n *nameServer) serveUDP(socket net.PacketConn) {
	buf := make([]byte, 1<<12)
	for {
		count, from, err := socket.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := n.answer(buf[:count]); len(answer) <= 1200 {
			_, _ = socket.WriteTo(answer, from)
		} else {
			_, _ = socket.WriteTo(truncated(answer), from)
		}
	}
}

// truncated keeps the header and question of an answer, and says that there is more.
func truncated(answer []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return nil
	}
	m.Truncated, m.Answers = true, nil
	short, _ := m.Pack()
	return short
}

func (n *nameServer) serveTCP(conn net.Conn) {
	defer conn.Close()
	var size [2]byte
	for {
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		buf := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, buf); err != nil {
			return
		}
		answer := n.answer(buf)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer is the reply to a question; as many records as a message holds.
func (n *nameServer) answer(question []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	q := m.Questions[0]
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 5}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	switch _, known := n.hosts[name]; {
	case q.Type == dnsmessage.TypeSRV && name == records:
		for _, r := range n.ports[:min(len(n.ports), recordsMost)] {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.SRVResource{
				Port: r.port, Target: dnsmessage.MustNewName(r.host + "."),
			}})
		}
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		for _, a := range n.hosts[name] {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: [4]byte(net.ParseIP(a).To4())}})
		}
	}
	for {
		answer, err := m.Pack()
		if err == nil && len(answer) < 1<<16 {
			return answer
		}
		m.Answers = m.Answers[:len(m.Answers)*9/10]
	}
}

//go:build cgo

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/mesh/service"
	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// credentials are a certificate in files.
type credentials struct{ cert, key, print string }

func newCredentials(t *testing.T, name string) credentials {
	t.Helper()
	dir := t.TempDir()
	pair := testcert.New(t).Issue(t, name, "")
	c := credentials{cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key")}
	require.NoError(t, os.WriteFile(c.cert, pair.Cert, 0o600))
	require.NoError(t, os.WriteFile(c.key, pair.Key, 0o600))
	block, _ := pem.Decode(pair.Cert)
	c.print = fmt.Sprintf("%x", sha256.Sum256(block.Bytes))
	return c
}

// running is a node with a console.
type running struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Scanner
	ended chan int
	log   bytes.Buffer
}

// startNode runs nfsim --console and reads the lines that it begins with.
func startNode(t *testing.T, c credentials, args ...string) (r *running, begin []string) {
	t.Helper()
	commands, in := io.Pipe()
	answers, out := io.Pipe()
	r = &running{t: t, in: in, out: bufio.NewScanner(answers), ended: make(chan int, 1)}
	args = append(args, "--console", "--certificate", c.cert, "--key", c.key)
	go func() {
		root := newRoot()
		root.SetArgs(args)
		root.SetIn(commands)
		root.SetOut(out)
		root.SetErr(&r.log)
		code := exitOK
		if err := root.ExecuteContext(context.Background()); err != nil {
			code = exitFailed
		}
		_ = out.Close()
		r.ended <- code
	}()
	for r.out.Scan() {
		begin = append(begin, r.out.Text())
		if strings.HasPrefix(r.out.Text(), "node ") {
			break
		}
	}
	return r, begin
}

// ask gives a command and returns the answer.
func (r *running) ask(command string) string {
	r.t.Helper()
	_, err := io.WriteString(r.in, command+"\n")
	require.NoError(r.t, err)
	var lines []string
	for r.out.Scan() && r.out.Text() != "" {
		lines = append(lines, r.out.Text())
	}
	return strings.Join(lines, "\n")
}

// until asks until the answer is as wanted.
func (r *running) until(command string, ok func(answer string) bool) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return ok(r.ask(command)) }, time.Minute, 5*time.Millisecond)
}

func (r *running) end() {
	require.NoError(r.t, r.in.Close())
	require.Equal(r.t, exitOK, <-r.ended)
}

// TestNodesOfProcesses: two nodes over TLS; packets, a cut, a test of a link.
func TestNodesOfProcesses(t *testing.T) {
	a, b := newCredentials(t, "a"), newCredentials(t, "b")
	far, begin := startNode(t, b, "--node", "1,0,0", "--torus", "2x1x1", "--listen", "127.0.0.1:0", "--peer", "0.0.0="+a.print)
	require.Len(t, begin, 2)
	address := strings.TrimPrefix(begin[0], "listening ")
	require.Equal(t, "node 1.0.0 of 2x1x1, certificate "+b.print, begin[1])
	near, _ := startNode(t, a, "--node", "0.0.0", "--torus", "2x1x1", "--peer", "1.0.0="+b.print,
		"--link", "x+="+address, "--link", "x-="+address)
	well := func(answer string) bool { return strings.Contains(answer, "o -- o --") }
	near.until("map", well)
	far.until("map", well)
	require.Equal(t, "x+", near.ask("route 1.0.0"))

	var c counts
	far.until("count", func(answer string) bool { // a link that broke meanwhile loses some
		require.NoError(t, json.Unmarshal([]byte(answer), &c))
		if c.Came < 200 && near.ask("done") == "true" {
			require.Equal(t, "sending", near.ask("send 1.0.0 200 4096"))
		}
		return c.Came >= 200
	})
	require.Zero(t, c.Changed+c.Doubled)
	require.Equal(t, c.Came*4096, c.Bytes)
	near.until("done", func(answer string) bool { return answer == "true" })
	near.until("test x+ 25600", func(answer string) bool { return answer == "25600 words, 0 wrong" }) // unless it broke

	require.Equal(t, "ok", near.ask("cut x+"))
	near.until("route 1.0.0", func(answer string) bool { return answer == "x-" || answer == "x-*" })
	require.Contains(t, near.ask("test x+ 1"), "error: ")
	require.Equal(t, "ok", near.ask("mend x+"))
	near.until("map", well)

	for _, bad := range []string{"sing", "map all", "route", "route 9.0.0", "route x", "send 1.0.0 a 1", "send 1.0.0 1 a", "send 1.0.0 1 4097", "send 1.0.0 -1 0", "cut w+", "cut y+", "test x+ a", "test q 1", "test x+ 0"} {
		require.Contains(t, near.ask(bad), "error: ", bad)
	}
	require.Empty(t, near.ask(""))
	near.end()
	far.end()
}

// TestNodeStartsAgain: packets of a node that was started again carry the numbers of
// those that it sent before, and none counts as doubled.
func TestNodeStartsAgain(t *testing.T) {
	a, b := newCredentials(t, "a"), newCredentials(t, "b")
	far, begin := startNode(t, b, "--node", "1,0,0", "--torus", "2x1x1", "--listen", "127.0.0.1:0", "--peer", "0.0.0="+a.print)
	address := strings.TrimPrefix(begin[0], "listening ")
	var c counts
	for want := uint64(20); want <= 40; want += 20 {
		near, _ := startNode(t, a, "--node", "0.0.0", "--torus", "2x1x1", "--peer", "1.0.0="+b.print,
			"--link", "x+="+address, "--link", "x-="+address)
		near.until("map", func(answer string) bool { return strings.Contains(answer, "o -- o --") })
		far.until("count", func(answer string) bool { // a link that broke meanwhile loses some
			require.NoError(t, json.Unmarshal([]byte(answer), &c))
			if c.Came < want && near.ask("done") == "true" {
				require.Equal(t, "sending", near.ask("send 1.0.0 20 64"))
			}
			return c.Came >= want
		})
		near.end()
	}
	require.Zero(t, c.Changed+c.Doubled)
	far.end()
}

// TestBadNodes: each is one typed error, of the command line.
func TestBadNodes(t *testing.T) {
	c := newCredentials(t, "c")
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "fabric.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	two := func(first, second string) string {
		return file("torus: 2x1x1\nnodes:\n  - {node: 0.0.0, name: a, certificate: " + first + "}\n  - {node: 1.0.0, name: b" + second + "}\n")
	}
	other := strings.Repeat("5e", 32)
	listen := ", listen: '127.0.0.1:7001', certificate: " + other
	flags := func(more ...string) []string { return append([]string{"--torus", "2x2x1", "--node", "0,0,0"}, more...) }
	member := func(node, records string, more ...string) []string {
		return append([]string{"--torus", "2x2x1", "--node", node, "--service", records, "--listen", "127.0.0.1:0", "--authority", c.cert}, more...)
	}
	for name, bad := range map[string]struct {
		args []string
		want error
	}{
		"no service":           {member("nf-0", "nf.svc"), service.ErrName},
		"no number":            {member("0.0.0", "_a._tcp.nf.svc"), service.ErrName},
		"no node of it":        {member("nf-4", "_a._tcp.nf.svc"), topology.ErrOutside},
		"service and links":    {member("nf-0", "_a._tcp.nf.svc", "--peer", "1.0.0="+other), nil},
		"service and file":     {member("nf-0", "_a._tcp.nf.svc", "--fabric", "f"), nil},
		"no authority":         {member("nf-0", "_a._tcp.nf.svc", "--authority", ""), nil},
		"authority alone":      {flags("--authority", c.cert, "--peer", "1.0.0="+other, "--link", "x+=a:1"), nil},
		"no torus":             {[]string{"--node", "0.0.0"}, nil},
		"33 thousand":          {[]string{"--node", "0.0.0", "--torus", "32x32x33"}, topology.ErrTorus},
		"no YAML":              {[]string{"--node", "a", "--fabric", file("torus: [")}, topology.ErrSyntax},
		"a torus of one":       {[]string{"--node", "0.0.0", "--torus", "1x1x1"}, topology.ErrTorus},
		"outside":              {[]string{"--node", "2.0.0", "--torus", "2x2x1"}, topology.ErrOutside},
		"no node":              {[]string{"--node", "zero", "--torus", "2x2x1"}, topology.ErrSyntax},
		"nobody joins it":      {flags(), nil},
		"no such link":         {flags("--link", "w+=a:1"), topology.ErrSyntax},
		"no address":           {flags("--peer", "1.0.0="+other, "--link", "x+"), topology.ErrSyntax},
		"a link to itself":     {flags("--link", "z+=a:1"), topology.ErrContradiction},
		"an unknown medium":    {flags("--peer", "1.0.0="+other, "--link", "x+=quic://a:1"), bridge.ErrInvalid},
		"listens nowhere":      {flags("--listen", "udp://7000"), bridge.ErrInvalid},
		"a link twice":         {flags("--peer", "1.0.0="+other, "--link", "x+=a:1", "--link", "x+=b:1"), topology.ErrContradiction},
		"an unknown neighbour": {flags("--link", "x+=a:1"), mesh.ErrPeer},
		"a peer outside":       {flags("--peer", "5.0.0="+other), topology.ErrOutside},
		"half a certificate":   {flags("--peer", "1.0.0=5e"), topology.ErrSyntax},
		"no such file":         {[]string{"--node", "a", "--fabric", "/nowhere"}, os.ErrNotExist},
		"file and flags":       {flags("--fabric", two(other, listen)), nil},
		"not in the file":      {[]string{"--node", "c", "--fabric", two(other, listen)}, topology.ErrOutside},
		"another certificate":  {[]string{"--node", "a", "--fabric", two(other, listen)}, topology.ErrContradiction},
		"a stranger":           {[]string{"--node", "a", "--fabric", two(c.print, ", listen: '127.0.0.1:7001'")}, mesh.ErrPeer},
		"nobody listens":       {[]string{"--node", "a", "--fabric", two(c.print, ", certificate: "+other)}, topology.ErrContradiction},
		"a contradiction":      {[]string{"--node", "a", "--fabric", file("torus: 2x1x1\nnodes: [{node: 0.0.0}, {node: 0.0.0}]\n")}, topology.ErrContradiction},
		"a rate": {[]string{"--node", "a", "--fabric", file("torus: 2x1x1\nnodes:\n  - {node: 0.0.0, name: a}\n  - {node: 1.0.0" + listen +
			"}\nlinks: [{from: 1.0.0, link: x-, rate: 1Gbit/s}]\n")}, bridge.ErrNotSupported},
	} {
		root := newRoot()
		root.SetArgs(append(bad.args, "--certificate", c.cert, "--key", c.key))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		err := root.ExecuteContext(t.Context())
		var usage usageError
		require.ErrorAs(t, err, &usage, name)
		if bad.want != nil {
			require.ErrorIs(t, err, bad.want, name)
		}
	}
	var errs bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), []string{"--node", "0.0.0", "--torus", "2x1x1"}, io.Discard, &errs), "no certificate")
	require.Equal(t, exitUsage, run(t.Context(), []string{"--node", "0.0.0", "--shm", "x"}, io.Discard, &errs))
	require.Contains(t, errs.String(), "--certificate and --key")
}

// TestNodesOverUDP: two nodes over UDP, as the map shows.
func TestNodesOverUDP(t *testing.T) {
	a, b := newCredentials(t, "a"), newCredentials(t, "b")
	far, begin := startNode(t, b, "--node", "1,0,0", "--torus", "2x1x1", "--listen", "udp://127.0.0.1:0", "--peer", "0.0.0="+a.print)
	address := strings.TrimPrefix(begin[0], "listening ")
	require.True(t, strings.HasPrefix(address, "udp://127.0.0.1:"), address)
	near, _ := startNode(t, a, "--node", "0.0.0", "--torus", "2x1x1", "--peer", "1.0.0="+b.print, "--link", "x+="+address, "--link", "x-="+address)
	well := func(answer string) bool {
		return strings.Contains(answer, "o -- o --") && strings.Contains(answer, "normal over udp")
	}
	near.until("map", well)
	far.until("map", well)
	var c counts
	far.until("count", func(answer string) bool { // a link that broke meanwhile loses some
		require.NoError(t, json.Unmarshal([]byte(answer), &c))
		if c.Came < 20 && near.ask("done") == "true" {
			require.Equal(t, "sending", near.ask("send 1.0.0 20 4096"))
		}
		return c.Came >= 20
	})
	require.Zero(t, c.Changed+c.Doubled)
	near.end()
	far.end()
}

// TestWhoDialsInAService: each node dials on its plus side by the names of the others.
func TestWhoDialsInAService(t *testing.T) {
	c := newCredentials(t, "c")
	s, err := parseNode(&options{
		node: "nf-5", torus: "3x2x1", service: "_links._tcp.nf.svc.", listen: "udp://0.0.0.0:7000",
		certificate: c.cert, key: c.key, authority: c.cert,
	})
	require.NoError(t, err)
	require.Equal(t, "2.1.0", s.at.String())
	require.Equal(t, map[topology.Link]string{topology.XPlus: "nf-3.nf.svc", topology.YPlus: "nf-2.nf.svc"}, s.dial)
}

// TestWhoDials: of two that both listen, the end on the plus side of a link does.
func TestWhoDials(t *testing.T) {
	c := newCredentials(t, "c")
	path := filepath.Join(t.TempDir(), "fabric.yaml")
	text := "torus: 3x1x1\nflow: classic\ndepth: 2048\nnodes:\n"
	for i := range 3 {
		text += fmt.Sprintf("  - {node: %d.0.0, listen: '127.0.0.1:700%d', certificate: %s}\n", i, i, c.print)
	}
	require.NoError(t, os.WriteFile(path, []byte(text+"links: [{from: 2.0.0, link: x+, off: true}]\n"), 0o600))
	want := []map[topology.Link]string{{topology.XPlus: "127.0.0.1:7001"}, {topology.XPlus: "127.0.0.1:7002"}, {}}
	for i := range 3 {
		s, err := parseNode(&options{node: fmt.Sprintf("%d.0.0", i), fabric: path, certificate: c.cert, key: c.key})
		require.NoError(t, err)
		require.Equal(t, want[i], s.dial)
		require.True(t, s.classic)
		require.Equal(t, 2048, s.depth)
	}
}

//go:build cgo

package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/mesh/service"
	"github.com/nfcomms/nfcomms/internal/mesh/udp"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// nodeSettings is the node of a fabric that the command line asks for.
type nodeSettings struct {
	torus   topology.Torus
	at      topology.Node
	listen  string // empty: neighbours are reached, and reach nobody here
	dial    map[topology.Link]string
	id      mesh.Identity
	found   *service.Service // where the others are; nil: dial says it
	print   mesh.Fingerprint // of its own certificate
	classic bool
	depth   int
}

// parseNode reads the options of a node.
func parseNode(o *options) (*nodeSettings, error) {
	s := &nodeSettings{dial: map[topology.Link]string{}, id: mesh.Identity{Known: map[int]mesh.Fingerprint{}, Dial: udp.Dial}}
	if err := s.loadCertificate(o); err != nil {
		return nil, err
	}
	read := s.flags
	switch {
	case o.service != "":
		read = s.members
	case o.authority != "":
		return nil, usagef("--authority is for nodes of a --service; others know certificates one by one")
	case o.fabric != "":
		read = s.file
	}
	if err := read(o); err != nil {
		return nil, usageError{err}
	}
	if s.listen == "" && len(s.dial) == 0 {
		return nil, usagef("node %v neither listens nor reaches a neighbour: nothing would join it", s.at)
	}
	return s, nil
}

func (s *nodeSettings) loadCertificate(o *options) (err error) {
	if o.certificate == "" || o.key == "" {
		return usagef("a node needs --certificate and --key: links that leave the process are encrypted")
	}
	s.id.Certificate, err = tls.LoadX509KeyPair(o.certificate, o.key)
	if err != nil {
		return usagef("certificate of the node: %w", err)
	}
	s.print = sha256.Sum256(s.id.Certificate.Certificate[0])
	return nil
}

// parseAddress reads "1.0.0", and "1,0,0", of the torus.
func (s *nodeSettings) parseAddress(text string) (topology.Node, error) {
	n, err := topology.ParseNode(strings.ReplaceAll(text, ",", "."))
	if err == nil && !s.torus.Contains(n) {
		err = fmt.Errorf("node %v: %w of %v", n, topology.ErrOutside, s.torus)
	}
	return n, err
}

// know notes the certificate of a node.
func (s *nodeSettings) know(n topology.Node, digits string) error {
	var f mesh.Fingerprint
	b, err := hex.DecodeString(strings.ToLower(strings.ReplaceAll(digits, ":", "")))
	if err != nil || len(b) != len(f) {
		return fmt.Errorf("certificate %q of node %v: %w: want the 64 hex digits of its SHA-256", digits, n, topology.ErrSyntax)
	}
	copy(f[:], b)
	s.id.Known[s.torus.Index(n)] = f
	return nil
}

// flags reads a node without a file.
func (s *nodeSettings) flags(o *options) (err error) {
	if o.torus == "" {
		return errors.New("a node needs --torus, as 2x2x1, or --fabric")
	}
	if s.torus, err = topology.ParseTorus(o.torus); err != nil {
		return err
	}
	if s.at, err = s.parseAddress(o.node); err != nil {
		return err
	}
	if s.listen = o.listen; s.listen != "" {
		if _, _, err := bridge.ParseFabricAddress(s.listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
	}
	for _, text := range o.peers {
		where, digits, _ := strings.Cut(text, "=")
		n, err := s.parseAddress(where)
		if err != nil {
			return fmt.Errorf("--peer %q: %w", text, err)
		}
		if err := s.know(n, digits); err != nil {
			return err
		}
	}
	for _, text := range o.links {
		if err := s.link(text); err != nil {
			return fmt.Errorf("--link %q: %w", text, err)
		}
	}
	return nil
}

// link reads "x+=HOST:PORT" and "x+=udp://HOST:PORT".
func (s *nodeSettings) link(text string) error {
	name, address, _ := strings.Cut(text, "=")
	l, err := topology.ParseLink(name)
	if err != nil {
		return err
	}
	to := s.torus.Neighbour(s.at, l)
	switch {
	case to == s.at:
		return fmt.Errorf("%w: it leads to itself: that side of %v is 1", topology.ErrContradiction, s.torus)
	case address == "":
		return fmt.Errorf("%w: want x+=HOST:PORT", topology.ErrSyntax)
	case s.dial[l] != "":
		return fmt.Errorf("%w: it is given twice", topology.ErrContradiction)
	}
	if _, known := s.id.Known[s.torus.Index(to)]; !known {
		return fmt.Errorf("%w: neighbour %v has no certificate on the list: --peer %v=SHA256", mesh.ErrPeer, to, to)
	}
	if _, _, err := bridge.ParseFabricAddress(address); err != nil {
		return err
	}
	s.dial[l] = address
	return nil
}

// file reads a node that a fabric file names.
func (s *nodeSettings) file(o *options) error {
	if o.torus != "" || o.listen != "" || len(o.links)+len(o.peers) > 0 {
		return errors.New("--fabric has torus, links, addresses and certificates: give no other flags for them")
	}
	data, err := os.ReadFile(o.fabric)
	if err != nil {
		return err
	}
	d, err := topology.Parse(o.fabric, data)
	if err != nil {
		return err
	}
	own := d.Find(strings.ReplaceAll(o.node, ",", "."))
	if own == nil {
		return fmt.Errorf("%s: node %q: %w: it does not name that", o.fabric, o.node, topology.ErrOutside)
	}
	s.torus, s.at, s.listen, s.classic, s.depth = d.Torus, own.Node, own.Listen, d.Flow == "classic", d.Depth
	for _, n := range d.Nodes {
		if n.Certificate == "" {
			continue // neighbours ask for it, if it is one
		}
		if err := s.know(n.Node, n.Certificate); err != nil {
			return err
		}
	}
	if f, given := s.id.Known[s.torus.Index(s.at)]; given && f != s.print {
		return fmt.Errorf("%s: node %v: %w: --certificate is another than the file has", o.fabric, s.at, topology.ErrContradiction)
	}
	for l := range topology.Links {
		if err := s.neighbour(d, l); err != nil {
			return fmt.Errorf("%s: link %v of %v: %w", o.fabric, l, s.at, err)
		}
	}
	return nil
}

// neighbour finds out who of both ends of a link dials: that of its plus side, if the
// other listens.
func (s *nodeSettings) neighbour(d *topology.Description, l topology.Link) error {
	at := s.torus.Neighbour(s.at, l)
	to := d.Find(at.String())
	if at == s.at || to == nil {
		return nil // nobody is there, or not yet
	}
	e := d.Link(s.at, l)
	switch {
	case e != nil && e.Off:
		return nil
	case e != nil && e.Gigabits > 0:
		return fmt.Errorf("a rate of a link between processes: %w", bridge.ErrNotSupported)
	case to.Certificate == "":
		return fmt.Errorf("%w: neighbour %v has no certificate", mesh.ErrPeer, at)
	case to.Listen == "" && s.listen == "":
		return fmt.Errorf("%w: neither %v nor %v listens", topology.ErrContradiction, s.at, at)
	}
	plus := l&1 == 0
	if to.Listen != "" && (plus || s.listen == "") {
		s.dial[l] = to.Listen
	}
	return nil
}

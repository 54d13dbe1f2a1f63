//go:build cgo

package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/mesh/service"
	"github.com/nfcomms/nfcomms/internal/mesh/udp"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// members reads a node of a service: of each link the end on the plus side dials.
func (s *nodeSettings) members(o *options) error {
	switch {
	case o.fabric != "" || len(o.links)+len(o.peers) > 0:
		return errors.New("--service has addresses and certificates of the others: give no --fabric, --link and --peer")
	case o.torus == "" || o.listen == "" || o.authority == "":
		return errors.New("a node of a --service needs --torus, --listen and --authority")
	}
	if _, _, err := bridge.ParseFabricAddress(o.listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	found, index, err := service.Parse(o.service, o.node)
	if err != nil {
		return err
	}
	if s.torus, err = topology.ParseTorus(o.torus); err != nil {
		return err
	}
	if index >= s.torus.Nodes() {
		return fmt.Errorf("node %q: %w: %v has %d nodes, from 0", o.node, topology.ErrOutside, s.torus, s.torus.Nodes())
	}
	s.at, s.listen, s.found = s.torus.Node(index), o.listen, found
	s.id.Dial = found.Dial(udp.Dial)
	for l := topology.XPlus; l < topology.Links; l += 2 {
		if to := s.torus.Neighbour(s.at, l); to != s.at {
			s.dial[l] = found.Host(s.torus.Index(to))
		}
	}
	return nil
}

// issued are the certificates of the nodes of a service.
func (s *nodeSettings) issued(o *options, log *slog.Logger) (err error) {
	if s.found == nil {
		return nil
	}
	s.id.Issued, err = service.Open(service.Files{Certificate: o.certificate, Key: o.key, Authority: o.authority}, s.found.Host, log)
	return err
}

//go:build linux

package soak

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	compiler "github.com/nfcomms/nfcomms/pkg/program"
)

//go:embed relay
var relaySource embed.FS

// buildRelay builds the program that the near ends of joints run.
func buildRelay(ctx context.Context) ([]byte, error) {
	source, err := fs.Sub(relaySource, "relay")
	if err != nil {
		return nil, err
	}
	image, err := compiler.Build(ctx, source, compiler.Options{})
	if err != nil {
		return nil, fmt.Errorf("program for joints (--joints=false does without): %w", err)
	}
	return image, nil
}

// soakedJoint has a process at one node speak to one at another; this process gives it what
// it says.
type soakedJoint struct {
	from, to *soakedNode
	relay    []byte
}

// start starts a program at the far node, and a relay to it at the near one.
func (j *soakedJoint) start(ctx context.Context, name string) (p *compare.Program, err error) {
	relay, err := j.from.dev.Load(ctx, j.relay)
	if err != nil {
		return nil, err
	}
	far := &compare.Program{Dev: j.to.dev}
	if far.Proc, err = far.Dev.Start(ctx, nfcomms.Program{Name: name, Targets: 1}); err != nil {
		return nil, err
	}
	at := nfcomms.Program{Name: relay, Targets: 1, Argument: uint64(j.to.target(far.Proc.First))}
	near := &compare.Program{Dev: j.from.dev, Behind: far}
	if near.Proc, err = near.Dev.Start(ctx, at); err != nil {
		return nil, errors.Join(err, far.Stop(ctx))
	}
	ch, err := near.Dev.Subscribe(ctx, near.Proc.First)
	if err != nil {
		return nil, errors.Join(err, near.Stop(ctx))
	}
	near.Chans = []*nfcomms.Channel{ch}
	return near, nil
}

// isJointLost reports whether an error is what a process hears whose relay ended, because
// the process behind it did.
func isJointLost(err error) bool {
	return errors.Is(err, nfcomms.ErrClosed)
}

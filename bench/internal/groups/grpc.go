//go:build linux

package groups

import (
	"context"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
)

const nameStreams = "grpc streams"

// newStreamSide is a contender that exchanges over gRPC as a service would: one
// server, a stream of messages from each member to each of its neighbours.
func newStreamSide(ctx context.Context, s exchangeShape) (*compare.Contender, error) {
	edges := make([]compare.Edges, s.members)
	for rank := range edges {
		e := &edges[rank]
		e.Targets, e.Sources = s.neighbours(rank)
		for _, p := range s.packages(rank) {
			e.Out = append(e.Out, p.Data)
		}
	}
	m, err := compare.OpenGRPCMesh(ctx, edges, s.size)
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context, n int) (time.Duration, error) {
		return compare.Timed(func() error {
			return together(s.members, func(rank int) error { return m.Steps(ctx, rank, n) })
		})
	}
	return &compare.Contender{Name: nameStreams, Size: s.size, Batch: s.batch(), Run: run, CPU: compare.SelfCPU, Close: m.Close}, nil
}

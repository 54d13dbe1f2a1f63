package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Stages of one island, of several, and of blocks that are no whole pages.
func TestPipeline(t *testing.T) {
	for _, line := range []string{
		"--blocks 10",
		"--stages 1 --size 0",
		"--stages 7 --size 5001 --address sim:?islands=4",
		"--stages 4 --size 300001 --blocks 5 --address sim:?islands=2&engines=2",
	} {
		code, out, errs := commandtest.Run(t.Context(), "pipeline", pipeline, strings.Fields(line)...)
		require.Equal(t, command.ExitOK, code, errs)
		require.Empty(t, errs)
		require.Contains(t, out, "verified: ")
	}
}

// Blocks go from node to node, also by way of the device that was opened, and past the host.
func TestNodes(t *testing.T) {
	line := strings.Fields("--nodes 1.0.0,1.1.0 --stages 2 --blocks 8 --size 500001")
	code, out, errs := commandtest.Run(t.Context(), "pipeline", pipeline, line...)
	require.Equal(t, command.ExitOK, code, errs)
	require.Regexp(t, `verified: 8 blocks .* MB/s \(simulated device\)`, out)
	require.Contains(t, out, "no block passed through it between stages")
	for _, line := range []string{
		"--nodes 1.0.0,0.0.0,1.1.0 --stages 5",
		"--nodes 1.0.0,5.0.0 --stages 2 --address sim:?torus=8x1x1",                   // four hops
		"--nodes 1.0.0,2.2.0,0.1.0 --stages 4 --address sim:?torus=3x3x1&errors=1e-4", // links that break words
	} {
		code, out, errs = commandtest.Run(t.Context(), "pipeline", pipeline, strings.Fields(line+" --blocks 3 --size 70001")...)
		require.Equal(t, command.ExitOK, code, errs)
		require.Contains(t, out, "verified: 3 blocks")
	}
}

// A link that is cut costs time; a node that dies ends the stages beside it, and what comes
// after it is as new.
func TestNodeDies(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dev, err := nfcomms.Open(ctx, "sim:?torus=2x2x1")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	s := &settings{stages: 2, blocks: 3, size: 200_001}
	s.nodes = []fabric.Place{fabric.At(1, 0, 0), fabric.At(1, 1, 0)}
	in, out, err := s.start(ctx, dev)
	require.NoError(t, err)
	require.NoError(t, fabric.Of(dev).CutLink(t.Context(), fabric.At(1, 0, 0), 2, true))
	require.NoError(t, s.pass(ctx, in, out))
	require.NoError(t, fabric.Of(dev).KillNode(t.Context(), fabric.At(1, 1, 0), true))
	for err == nil { // the first stage hears of it, and ends
		err = in.Send(ctx, []byte{1})
	}
	require.ErrorIs(t, err, nfcomms.ErrClosed)
	require.NoError(t, fabric.Of(dev).KillNode(t.Context(), fabric.At(1, 1, 0), false))
	for err != nil && ctx.Err() == nil { // until its links are up
		if err = dev.Reset(ctx); err == nil {
			in, out, err = s.start(ctx, dev)
		}
	}
	require.NoError(t, err)
	require.NoError(t, s.pass(ctx, in, out))
}

// A stage that ends ends those before it and behind it. Until then the port that one
// has of another is no one else's; afterwards all of them are free.
func TestStagesEnd(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:?islands=2")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	in, out, err := (&settings{stages: 3}).start(t.Context(), dev)
	require.NoError(t, err)
	require.NoError(t, in.Send(t.Context(), []byte{1}))
	got := make([]byte, 1)
	_, err = out.Receive(t.Context(), got)
	require.NoError(t, err)
	require.Equal(t, byte(4), got[0])
	// the first stage has this port of the second, that this one of the third
	for _, taken := range []nfcomms.Target{in.Target() - 1, out.Target() - 1} {
		_, err = dev.Subscribe(t.Context(), taken)
		require.ErrorIs(t, err, nfcomms.ErrBusy)
	}
	require.NoError(t, in.Close())
	_, err = out.Receive(t.Context(), got)
	require.ErrorIs(t, err, nfcomms.ErrClosed)
	require.NoError(t, out.Close())
	in, out, err = (&settings{stages: 3}).start(t.Context(), dev)
	require.NoError(t, err)
	require.NoError(t, (&settings{stages: 3, blocks: 2, size: 100}).pass(t.Context(), in, out))
}

func TestBadInput(t *testing.T) {
	for line, says := range map[string]string{
		"--stages 0":       "--stages 0 is not 1 to 50",
		"--blocks 0":       "--blocks 0 of",
		"--size -1":        "--size -1",
		"--nodes 1.0":      `node "1.0"`,
		"--nodes 9.0.0":    "9.0.0",
		"--address card:0": `"card"`,
		"more":             "more",
	} {
		code, out, errs := commandtest.Run(t.Context(), "pipeline", pipeline, strings.Fields(line)...)
		require.Equal(t, command.ExitInput, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, says)
	}
}

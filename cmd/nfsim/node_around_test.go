//go:build cgo

package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// square is four nodes, each a process: 0.0.0, which has clients, 1.0.0, 0.1.0 and 1.1.0.
type square struct {
	nodes [4]*childProcess
	args  [4][]string // to start one again at its address
	path  string      // of the socket
}

// startSquare starts them; each dials those that were started before it.
func startSquare(t *testing.T) *square {
	t.Helper()
	s := &square{path: filepath.Join(t.TempDir(), "s")}
	places := [4]string{"0.0.0", "1.0.0", "0.1.0", "1.1.0"}
	var who [4]credentials
	for i := range who {
		who[i] = newCredentials(t, places[i])
	}
	var address [4]string
	for _, i := range []int{3, 2, 1, 0} {
		args := []string{"--node", places[i], "--torus", "2x2x1", "--certificate", who[i].cert, "--key", who[i].key}
		for link, far := range map[string]int{"x": i ^ 1, "y": i ^ 2} {
			args = append(args, "--peer", places[far]+"="+who[far].print)
			if address[far] != "" {
				args = append(args, "--link", link+"+="+address[far], "--link", link+"-="+address[far])
			}
		}
		if i == 0 {
			s.nodes[0], s.args[0] = startChild(t, "device", append(args, "--shm", s.path)...), args
			continue
		}
		s.nodes[i] = startChild(t, "device", append(args, "--listen", "127.0.0.1:0")...)
		address[i] = strings.TrimPrefix(s.nodes[i].says.Text(), "listening ")
		s.args[i] = append(args, "--listen", address[i])
	}
	return s
}

// echoes sends transfers to a node and back until so many have returned. A node that is lost because
// it had no processor is used again after a reset. Each has the bytes that were sent.
func echoes(t *testing.T, e *bridgetest.Env, dev bridge.Device, to abi.Node, count int) {
	t.Helper()
	buf := make([]byte, 200_000)
	for round := 0; round < count; {
		ch, err := dev.Subscribe(e.Ctx(), bridge.At(to, nfcomms.Loopback))
		for err == nil && round < count {
			if err = echo(e.Ctx(), ch, buf, uint64(round)); err == nil {
				round++
			}
		}
		if err == nil {
			require.NoError(t, ch.Close())
			return
		}
		require.True(t, errors.Is(err, bridge.ErrDeviceLost) || errors.Is(err, bridge.ErrTargetTimeout), "%v", err)
		e.Until("it can be reset", func() bool { return dev.Reset(e.Ctx()) == nil })
	}
}

// untilBroken waits until the near node knows of so many broken links, and of all nodes.
func untilBroken(t *testing.T, e *bridgetest.Env, f bridge.Fabric, want int) {
	t.Helper()
	e.Until("links are as they should be", func() bool {
		s, err := f.State(t.Context())
		require.NoError(t, err)
		broken := 0
		for _, n := range s.Nodes {
			if !n.Word.Valid() {
				return false
			}
			for _, shift := range []uint{abi.DiagXPlus, abi.DiagXMinus, abi.DiagYPlus, abi.DiagYMinus} {
				if n.Word.Reading(shift) == abi.Broken {
					broken++
				}
			}
		}
		return broken == want
	})
}

// TestAroundWhatIsGone: transfers between processes are routed around two links that are cut at once,
// and around a node that was killed, and by it when it is there again.
func TestAroundWhatIsGone(t *testing.T) {
	e := bridgetest.NewEnv(t)
	s := startSquare(t)
	dev, err := bridge.Open(e.Ctx(), "shm:"+s.path, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	f := dev.(bridge.FabricNode).Fabric()
	untilBroken(t, e, f, 0)
	far := abi.MakeNode(1, 1, 0)
	echoes(t, e, dev, far, 3)

	for _, cut := range []bool{true, false} {
		require.NoError(t, f.CutLink(t.Context(), node0, 0, cut))
		require.NoError(t, f.CutLink(t.Context(), node0, 1, cut))
		if cut {
			untilBroken(t, e, f, 4) // each has two ends
		} else {
			untilBroken(t, e, f, 0)
		}
		echoes(t, e, dev, far, 3)
	}
	s.nodes[1].kill()
	echoes(t, e, dev, far, 3)
	s.nodes[1] = startChild(t, "device", s.args[1]...)
	untilBroken(t, e, f, 0)
	echoes(t, e, dev, node1, 3)
}

package scripted

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// slowHost is a host of which each move takes several heartbeats. It keeps the number of
// the heartbeat at each.
type slowHost struct {
	Host
	s  *Device
	at []uint64
}

func (h *slowHost) Move(mem []byte, address uint64, d abi.Direction) bool {
	h.at = append(h.at, h.s.cur.beat)
	for begin := time.Now(); time.Since(begin) < 4*h.s.shape.Beat; {
		if !h.Host.Move(mem, address, d) {
			return false
		}
	}
	return true
}

// TestHeartbeatsWhileItMoves: a device that moves a run of many megabytes for longer than a
// heartbeat may be late continues beating.
func TestHeartbeatsWhileItMoves(t *testing.T) {
	r := newRig(t, Shape{Runs: 1, Beat: time.Millisecond})
	slow := &slowHost{Host: r.s.host, s: r.s}
	r.locked(func() { r.s.host = slow })
	ch := r.Ports(r.dev, "loopback", 1)[0]
	require.NoError(t, ch.SendInd(r.Ctx(), make([]byte, 8*movePart)))
	require.GreaterOrEqual(t, len(slow.at), 8)
	for i := range slow.at[1:] {
		require.Greater(t, slow.at[i+1], slow.at[i])
	}
}

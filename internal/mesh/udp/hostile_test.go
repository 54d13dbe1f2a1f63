//go:build cgo

package udp

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// path is a way between two processes on which everything happens to packets: some are lost, late
// or doubled, and an attacker there sends them again later, changed or not.
type path struct {
	front, back *net.UDPConn // towards the dialling end, and towards the serving end
	mu          sync.Mutex
	random      *rand.Rand
	kept        [2][][]byte // by direction: to be replayed
	late        [2][]byte
	dialer      *net.UDPAddr
}

const keptMost = 200

func newPath(t *testing.T, address string) *path {
	t.Helper()
	_, host, err := bridge.ParseFabricAddress(address)
	require.NoError(t, err)
	to, err := net.ResolveUDPAddr("udp", host)
	require.NoError(t, err)
	p := &path{random: rand.New(rand.NewPCG(1, 2))}
	p.front, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	p.back, err = net.DialUDP("udp", nil, to)
	require.NoError(t, err)
	var sides sync.WaitGroup
	sides.Go(func() { p.carry(0) })
	sides.Go(func() { p.carry(1) })
	t.Cleanup(func() {
		p.front.Close()
		p.back.Close()
		sides.Wait()
	})
	return p
}

// address is where to dial.
func (p *path) address() string { return "udp://" + p.front.LocalAddr().String() }

// carry moves packets in a direction, from the front to the back if it is 0, until the sockets close.
func (p *path) carry(direction int) {
	buf := make([]byte, 1<<16)
	for {
		if direction == 0 {
			n, from, err := p.front.ReadFromUDP(buf)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.dialer = from
			p.pass(direction, slices.Clone(buf[:n]))
			p.mu.Unlock()
			continue
		}
		n, err := p.back.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.pass(direction, slices.Clone(buf[:n]))
		p.mu.Unlock()
	}
}

// send lets a packet through. Must hold mu.
func (p *path) send(direction int, b []byte) {
	if direction == 0 {
		_, _ = p.back.Write(b) // lost if it cannot
	} else if p.dialer != nil {
		_, _ = p.front.WriteToUDP(b, p.dialer)
	}
}

// pass decides what happens to a packet. Must hold mu.
func (p *path) pass(direction int, b []byte) {
	if late := p.late[direction]; late != nil {
		p.late[direction] = nil
		defer p.send(direction, late) // behind the one that came after it
	}
	if len(p.kept[direction]) < keptMost {
		p.kept[direction] = append(p.kept[direction], b)
	}
	old := slices.Clone(p.kept[direction][p.random.IntN(len(p.kept[direction]))])
	switch p.random.IntN(40) {
	case 0: // lost
		return
	case 1: // late
		p.late[direction] = b
		return
	case 2: // twice
		p.send(direction, b)
	case 3: // an earlier one once more
		p.send(direction, old)
	case 4: // that, changed
		old[p.random.IntN(len(old))] ^= byte(1 + p.random.IntN(255))
		p.send(direction, old)
	case 5: // one that was made up
		for i := range old {
			old[i] = byte(p.random.Uint32())
		}
		old[0] |= 0x40 // what QUIC looks at
		p.send(direction, old)
	case 6: // one to the other side
		p.send(1-direction, old)
	}
	p.send(direction, b)
}

// TestHostilePath: packets that are lost, late, doubled, replayed, forged or sent back cost time
// and nothing else.
func TestHostilePath(t *testing.T) {
	p := newPair(t)
	way := newPath(t, p.address)
	p.keep(way.address())
	p.settle(t, true)
	require.Equal(t, bridge.MediumUDP, p.medium(t))
	p.exchange(t, 200)
}

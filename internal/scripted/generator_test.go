package scripted

import (
	"context"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var seedFlag = flag.Uint64("bridgetest.seed", 0, "seed of TestRandomDevice; 0 takes one from the clock")

// generator makes device messages that are mostly what could arrive next.
type generator struct {
	*rand.Rand
	s *Device
}

// near is a number close to n, seldom one far away.
func (g *generator) near(n uint64) uint64 {
	switch g.IntN(12) {
	case 0:
		return n + 1
	case 1:
		return n - 1
	case 2:
		return n + uint64(g.IntN(1<<17))
	case 3:
		return g.Uint64()
	default:
		return n
	}
}

// messageLocked makes one message. Must hold s.mu.
func (g *generator) messageLocked() (m wire.Slot) {
	id := uint32(g.IntN(24))
	if g.IntN(20) == 0 {
		id = g.Uint32N(abi.ChannelsMax)
	}
	d := abi.Direction(g.IntN(2))
	next, size, lists := uint64(1), uint64(generatorSize), uint32(0)
	if c := g.s.cur.channels[id]; c != nil {
		if next = c.next[d]; g.IntN(3) > 0 {
			next-- // the one under way
		}
		if o := c.in; o != nil && d == abi.H2D {
			size, lists = o.size, o.move.lists
		}
	}
	t := g.kind()
	transaction := g.near(next)
	h := header{t, abi.PayloadSize, uint8(g.s.epochID), uint16(g.near(transaction)), id}
	switch t {
	case wire.TypeDirect:
		h.length = g.IntN(abi.PayloadSize + 3)
	case wire.TypeIndBegin:
		*m.Begin() = wire.Begin{Transaction: transaction, Size: g.near(size)}
	case wire.TypeClose:
		*m.Close() = wire.Close{Halves: g.Uint32N(5), Generation: g.near(uint64(g.IntN(8))), Status: g.Uint32N(30)}
	case wire.TypeWithdraw, wire.TypeWithdrawn, wire.TypeReady:
		*m.Note() = wire.Note{Transaction: transaction, Direction: uint32(d), Status: g.Uint32N(3)}
	default:
		*m.Ack() = g.record(t, transaction, d, size, lists)
	}
	m = withHeader(m, func(x *header) { *x = h })
	if g.IntN(15) == 0 {
		m.Header ^= 1 << g.IntN(64)
	}
	if g.IntN(15) == 0 {
		m.Payload[g.IntN(7)] ^= 1 << g.IntN(64)
	}
	if m.Header>>7&1 != 0 && g.IntN(8) > 0 {
		m.Header ^= 1 << 7 // an invisible slot ends the stream
	}
	return m
}

// kind picks a message type, mostly one that a device may send.
func (g *generator) kind() wire.Type {
	usual := []wire.Type{wire.TypeDirect, wire.TypeIndBegin, wire.TypeAck, wire.TypeAck, wire.TypeAck, wire.TypeDone,
		wire.TypeWithdraw, wire.TypeWithdrawn, wire.TypeAborted, wire.TypeClose, wire.TypeError, wire.TypeReady}
	if g.IntN(25) == 0 {
		return wire.Type(g.IntN(128))
	}
	return usual[g.IntN(len(usual))]
}

// record makes a completion record whose fields nearly fit together.
func (g *generator) record(t wire.Type, id uint64, d abi.Direction, size uint64, lists uint32) wire.Ack {
	a := wire.Ack{Transaction: id, Direction: uint32(d), State: wire.State(g.IntN(int(wire.StateCount)))}
	switch t {
	case wire.TypeDone:
		a.State, a.Processed, a.Lists = wire.StateDone, g.near(size), uint32(g.near(uint64(lists)))
	case wire.TypeError, wire.TypeAborted:
		a.State, a.Status = wire.StateFailed, abi.Status(g.IntN(int(abi.StatusCount)+1))
		a.Processed = g.Uint64N(size + 2)
	default:
		a.Lists = uint32(g.near(uint64(lists)))
		a.Processed = min(size, uint64(a.Lists)*wire.ListEntries*abi.PageSize)
	}
	a.Outstanding = g.near(size - a.Processed)
	return a
}

const generatorSize = 200_000

// assault makes calls of every kind while the device says what attack injects,
// and requires that each call ends with a named error, that no byte outside a
// buffer changes, and that a reset brings the device back.
func (r *rig) assault(attack func()) {
	ports := r.Ports(r.dev, "loopback", 4)
	ports = append(ports, r.Ports(r.dev, "hold", 4)...)
	ctx, cancel := context.WithCancel(r.Ctx())
	defer cancel()
	var calls []*bridgetest.Pending
	var buffers []*bridgetest.Buffer
	for i, ch := range ports {
		out, in := bridgetest.NewBuffer(generatorSize, i), bridgetest.NewBuffer(generatorSize, 7*i)
		buffers = append(buffers, out, in)
		calls = append(calls,
			bridgetest.Call("sends", func() error { return alternate(ctx, i, ch.Send, ch.SendInd, out.Data) }),
			bridgetest.Call("receives", func() error {
				return alternate(ctx, i/2, func(ctx context.Context, b []byte) error {
					_, err := ch.Receive(ctx, b)
					return err
				}, ch.ReceiveInd, in.Data)
			}))
	}
	r.UntilBlocked(r.dev, 1)
	attack()
	timer := time.AfterFunc(20*time.Millisecond, cancel)
	defer timer.Stop()
	for _, c := range calls {
		requireTyped(r, r.Wait(c))
	}
	for _, b := range buffers {
		r.Check(b)
	}
	for _, ch := range ports {
		_ = ch.Close()
	}
	r.recovers()
}

// alternate makes messages and transfers until one fails.
func alternate(ctx context.Context, first int, direct, indirect func(context.Context, []byte) error, b []byte) error {
	for i := first; ; i++ {
		var err error
		if i%2 == 0 {
			err = direct(ctx, b[:abi.PayloadSize])
		} else {
			err = indirect(ctx, b)
		}
		if err != nil {
			return err
		}
	}
}

// TestRandomDevice throws streams of random messages, mostly valid ones, at the
// host.
func TestRandomDevice(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (-bridgetest.seed)", seed)
	r := newRig(t, quickBeat)
	g := &generator{rand.New(rand.NewPCG(seed, 0)), r.s}
	for range max(10, bridgetest.Scaled(60)) {
		r.assault(func() {
			for range g.IntN(40) {
				r.locked(func() {
					for range 1 + g.IntN(4) {
						r.s.enqueueLocked(g.messageLocked())
					}
					r.s.flushLocked()
				})
			}
		})
	}
	st := r.dev.Stats()
	t.Logf("%d faults, %d dropped", st.Faults, st.Dropped)
	require.Positive(t, st.Faults)
	require.Positive(t, st.Dropped)
}

// FuzzDevice takes bytes as messages of the device.
func FuzzDevice(f *testing.F) {
	for _, t := range []wire.Type{wire.TypeDirect, wire.TypeIndBegin, wire.TypeAck, wire.TypeDone, wire.TypeWithdrawn,
		wire.TypeAborted, wire.TypeClose, wire.TypeError, wire.TypeReady, wire.TypeCount} {
		seed := make([]byte, 2*wire.SlotSize)
		binary.LittleEndian.PutUint64(seed, uint64(wire.MakeHeader(t, abi.PayloadSize, 1, 1, 16)))
		seed[8] = 1
		binary.LittleEndian.PutUint64(seed[64:], uint64(wire.MakeHeader(t, abi.PayloadSize, 1, 2, 17)))
		seed[72] = 2
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, quickBeat)
		r.assault(func() { r.s.Inject(slotsOf(data, uint8(r.s.Epoch()))...) })
	})
}

// slotsOf cuts bytes into at most 64 messages. The epoch is made right, so that
// bytes reach what is behind it, unless the length is odd and over 128.
func slotsOf(data []byte, epoch uint8) (all []wire.Slot) {
	for len(data) > 0 && len(all) < 64 {
		var raw [wire.SlotSize]byte
		data = data[copy(raw[:], data):]
		m := wire.Slot{Header: binary.LittleEndian.Uint64(raw[:])}
		copy(m.Bytes()[:], raw[8:])
		all = append(all, withHeader(m, func(h *header) {
			if h.length < 128 || h.length%2 == 0 {
				h.epoch = epoch
			}
			if h.channel >= 64 && h.channel < 1<<20 {
				h.channel %= 24
			}
		}))
	}
	return all
}

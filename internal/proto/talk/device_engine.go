package talk

import (
	"strconv"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// engine is the device's engine, which copies a batch of what has arrived at a time.
type engine struct {
	slow  bool   // no copy ends
	fails bool   // no page can be reached
	busy  uint64 // copies that find their page busy, before any other is tried
	hasty bool   // the device gives each offer a deadline
}

// moving is what a device knows of a transfer.
type moving struct {
	size     uint64
	received uint64 // bytes of the lists that arrived
	lists    uint64
	moved    uint64 // bytes that are in place
	finished uint64 // lists that are
	sum      bool   // its lists ask for a checksum
	repeat   bool   // lists are dropped until the one that was asked for
	eager    bool
	tries    uint64 // copies of pages that were busy
	reported [2]uint64
	status   abi.Status // why it ends early

	batch    [2]uint64 // bytes and lists that are in place when the batch is done
	underway bool
}

// device has the engine be as a line of a conversation has it.
func (m *DeviceModel) device(words []string) {
	m.engine = engine{slow: words[0] == "slow", fails: words[0] == "fails", hasty: m.engine.hasty || words[0] == "hasty"}
	if words[0] == "busy" {
		m.engine.busy, _ = strconv.ParseUint(words[1], 0, 8) // it was read once
	}
	for d := range m.half {
		m.pump(abi.Direction(d))
	}
	m.over()
}

// move has the engine move the pages of an eager transfer.
func (m *DeviceModel) move(d abi.Direction, size uint64) {
	m.transfer[d] = moving{size: size, received: size, lists: min(size, 1), eager: true}
	m.pump(d)
}

// pump has the engine move what has arrived, batch by batch, and ends a transfer that is to end once
// nothing moves.
func (m *DeviceModel) pump(d abi.Direction) {
	t := &m.transfer[d]
	for m.half[d].State == proto.DeviceMoving || m.half[d].State == proto.DeviceEager {
		ending := m.half[d].Marks&proto.DeviceEnding != 0
		followed := true
		switch {
		case t.underway && m.engine.slow:
			return
		case t.underway:
			t.underway = false
			followed = ending || m.copied(d)
		case ending:
			followed = m.follow(d, proto.EngineQuiet, 0)
		case t.moved == t.size:
			followed = m.follow(d, proto.EngineDone, 0)
		case t.moved == t.received:
			return
		default:
			t.underway, t.batch = true, [2]uint64{t.received, t.lists}
		}
		if !followed {
			return
		}
	}
}

// copied accounts for a batch that the engine has finished, or that failed. False: no transition follows.
func (m *DeviceModel) copied(d abi.Direction) bool {
	t, e := &m.transfer[d], &m.engine
	switch {
	case e.busy > 0:
		e.busy--
		if !t.eager {
			t.received, t.lists, t.repeat = t.moved, t.finished, true
		}
		if t.tries++; t.eager && t.tries > wire.RepeatsMax {
			return m.follow(d, proto.EngineBusy, 0) && m.follow(d, proto.EngineFailed, 0)
		}
		return m.follow(d, proto.EngineBusy, 0)
	case e.fails: // it is not tried again
		return m.follow(d, proto.EngineFailed, 0) && m.half[d].Marks&proto.DeviceEnding != 0
	}
	t.moved, t.finished = t.batch[0], t.batch[1]
	if half := m.open.Window / 2; t.moved < t.size && !t.eager &&
		(t.finished-t.reported[1] >= half || t.moved-t.reported[0] >= half*wire.ListEntries*abi.PageSize) {
		return m.follow(d, proto.EngineMoved, 0)
	}
	return true
}

package talk

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// memory is more than a device has.
const memory = 1 << 32

// Call makes the process begin a call.
func (m *DeviceModel) Call(words []string) error {
	switch words[0] {
	case "stop":
		m.halt()
		return nil
	case "device":
		m.device(words[1:])
		return nil
	}
	if m.busy {
		return fmt.Errorf("the process is in a call")
	}
	m.call, m.size, m.busy, m.done = words, 0, true, false
	if len(words) > 1 {
		m.size, _ = strconv.ParseUint(words[1], 0, 64) // it is a half, of close
	}
	if words[0] == "close" {
		m.closeHalves(map[string]uint32{"h2d": 1 << abi.H2D, "d2h": 1 << abi.D2H, "both": 1<<abi.H2D | 1<<abi.D2H}[words[1]])
		m.back(0)
		return nil
	}
	switch words[0] {
	case "write", "write_ind":
		m.give()
	case "reply":
		m.reply()
	default:
		m.begins()
		m.read()
	}
	return nil
}

// begins has a read acknowledge the question that the process has.
func (m *DeviceModel) begins() {
	if words := m.call[0]; words != "wait" && !m.stop {
		if m.half[abi.H2D].State == proto.DeviceTaken {
			m.follow(abi.H2D, proto.Read, 0)
		}
		m.asked = askedNothing
	}
}

// reply is channel_reply.
func (m *DeviceModel) reply() {
	was := m.asked
	switch {
	case m.size > abi.PayloadSize:
		m.back(-int(abi.ErrTooLarge))
		return
	case was == askedNothing:
		m.back(-int(abi.ErrInvalid))
		return
	}
	m.asked = askedNothing
	switch {
	case was == askedByMessage:
		m.call = []string{"write", m.call[1]}
		m.give()
	case m.half[abi.H2D].State == proto.DeviceTaken:
		m.follow(abi.H2D, proto.Reply, 0)
	case m.half[abi.H2D].Marks&(proto.DeviceShut|proto.DeviceClosed) != 0:
		m.back(-int(abi.ErrClosed))
	default:
		m.back(-int(abi.ErrWithdrawn))
	}
}

// halt makes the process stop.
func (m *DeviceModel) halt() {
	d := abi.D2H
	if m.busy && m.half[d].State != proto.DeviceIdle {
		m.follow(d, proto.Stop, 0)
	}
	m.stop = true
	if m.busy && m.reads() && !m.takes() {
		m.back(-int(abi.ErrStopped))
	}
}

// reads reports whether the call of the process is one of the h2d half.
func (m *DeviceModel) reads() bool {
	return slices.Contains([]string{"read", "read_ind", "take", "question", "wait"}, m.call[0])
}

// offered reports whether the host offers something.
func (m *DeviceModel) offered() bool {
	s := m.half[abi.H2D].State
	return s == proto.DeviceMessage || s == proto.DeviceOffered || s == proto.DeviceQuestion
}

// takes reports whether the process's read has a transfer.
func (m *DeviceModel) takes() bool {
	s := m.half[abi.H2D].State
	return s == proto.DeviceMoving || s == proto.DeviceEager || s == proto.DeviceCommit
}

// give makes the process offer something.
func (m *DeviceModel) give() {
	in := proto.GiveTransfer
	switch {
	case m.call[0] == "write" && m.size > abi.PayloadSize:
		m.back(-int(abi.ErrTooLarge))
		return
	case m.call[0] == "write_ind" && m.size >= memory:
		m.back(-int(abi.ErrRange))
		return
	case m.stop:
		m.back(-int(abi.ErrStopped))
		return
	case m.call[0] == "write":
		in = proto.GiveMessage
	case m.half[abi.D2H].Marks&proto.DevicePosted != 0 && m.posted == m.size:
		in = proto.GivePosted
	}
	m.follow(abi.D2H, in, 0)
	if in == proto.GivePosted && m.half[abi.D2H].State == proto.DeviceEager {
		m.move(abi.D2H, m.size)
	}
}

// read makes the process, which is in a call of the h2d half, continue with what is there.
func (m *DeviceModel) read() {
	if !m.busy || !m.reads() || m.takes() {
		return
	}
	offered := m.offered()
	switch {
	case m.call[0] == "read_ind" && m.size >= memory:
		m.follow(abi.H2D, proto.TakeRange, 0)
		m.back(-int(abi.ErrRange))
	case m.call[0] == "take" && m.size >= memory: // whatever is offered stays
		m.back(-int(abi.ErrRange))
	case m.stop:
		m.back(-int(abi.ErrStopped))
	case m.call[0] == "wait":
		m.wait(offered)
	case offered:
		m.take()
	default:
		m.follow(abi.H2D, proto.Read, 0)
		if m.busy {
			m.follow(abi.H2D, proto.Wait, 0)
		}
	}
}

// wait is channel_alt.
func (m *DeviceModel) wait(offered bool) {
	if offered || m.half[abi.H2D].Marks&proto.DeviceNotice != 0 {
		m.back(0)
		return
	}
	m.follow(abi.H2D, proto.Wait, 0)
}

// take has a read meet what is offered.
func (m *DeviceModel) take() {
	h, t := &m.half[abi.H2D], &m.transfer[abi.H2D]
	message := h.State != proto.DeviceOffered
	eager := h.Marks&proto.DevicePages != 0
	takes := m.call[0] == "take"
	switch {
	case m.call[0] == "question":
		m.question(message)
	case !takes && message != (m.call[0] == "read"):
		m.follow(abi.H2D, proto.TakeOther, 0)
	case !takes && message && m.length > m.size, takes && !message && t.size > m.size:
		m.follow(abi.H2D, proto.TakeShort, 0)
	case message:
		m.follow(abi.H2D, proto.Take, 0)
	case !takes && t.size != m.size:
		m.follow(abi.H2D, proto.TakeSize, 0)
	case eager:
		m.follow(abi.H2D, proto.Take, 0)
		m.move(abi.H2D, t.size)
	case t.size == 0:
		m.follow(abi.H2D, proto.TakeEmpty, 0)
	default:
		m.follow(abi.H2D, proto.Take, 0)
		if m.kept {
			m.kept = false
			m.lists(abi.H2D, &m.list)
		}
	}
}

// question has channel_question, which gives no room for a transfer, meet what is offered.
func (m *DeviceModel) question(message bool) {
	in, asked := proto.Take, askedByMessage
	switch {
	case message && m.length > m.size || !message && m.transfer[abi.H2D].size > 0:
		in, asked = proto.TakeShort, askedNothing
	case !message && m.half[abi.H2D].Marks&proto.DevicePages != 0:
		m.follow(abi.H2D, proto.Take, 0)
		m.move(abi.H2D, 0)
		return
	case !message:
		in, asked = proto.TakeEmpty, askedNothing
	case m.half[abi.H2D].State == proto.DeviceQuestion:
		in, asked = proto.TakeQuestion, askedByCall
	}
	m.asked = asked
	m.follow(abi.H2D, in, 0)
}

// closeHalves is channel_close.
func (m *DeviceModel) closeHalves(halves uint32) {
	for d := range m.half {
		if m.half[d].Marks&proto.DeviceClosed != 0 {
			halves &^= 1 << d
		}
		if halves>>d&1 != 0 {
			m.follow(abi.Direction(d), proto.CloseHalf, 0)
		}
	}
	if halves != 0 && !m.closed {
		m.close(halves)
	}
}

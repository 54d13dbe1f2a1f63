package mailbox

import "github.com/nfcomms/nfcomms/bridge/abi"

// Arm asks for one token on wake, without blocking, as soon as the device may
// be ready for the given half, or the half is shut. A token is a hint. A later
// Arm of the same half replaces this one.
func (c *Channel) Arm(direction abi.Direction, wake chan<- struct{}) error {
	h := c.half(uint32(direction))
	if h.shut.Load()&shutHere != 0 {
		return h.err()
	}
	h.mu.Lock()
	if h.arm == nil {
		h.lieDownLocked()
	}
	h.arm = wake
	h.armed.Store(true)
	h.mu.Unlock()
	if h.dir == abi.H2D {
		h.ask()
	}
	h.box.poll()
	if h.shut.Load() != 0 || h.dir == abi.D2H && h.state.Load()&fOffer != 0 {
		h.fire()
	}
	return nil
}

// Disarm takes an Arm back. The token may be on its way.
func (c *Channel) Disarm(direction abi.Direction) {
	h := c.half(uint32(direction))
	h.mu.Lock()
	h.disarmLocked()
	h.mu.Unlock()
}

// disarmLocked forgets the arm. Must hold mu.
func (h *half) disarmLocked() {
	if h.arm != nil {
		h.arm = nil
		h.armed.Store(false)
		h.getUpLocked()
	}
}

// fire sends the token if the half is armed.
func (h *half) fire() {
	if !h.armed.Load() {
		return
	}
	h.mu.Lock()
	if h.arm != nil {
		select {
		case h.arm <- struct{}{}:
		default: // it has one
		}
		h.disarmLocked()
	}
	h.mu.Unlock()
}

// ask sends OFFER: the device answers READY when the target waits to read.
// While a call sends, its unlock asks. The turn orders OFFER with the ids.
func (h *half) ask() {
	if !h.armed.Load() || !h.turn.try() {
		return
	}
	if h.shut.Load() == 0 {
		_ = h.say(abi.TypeOffer, h.id(h.state.Load())+1) // fails only when the device is gone
	}
	h.turn.unlock()
}

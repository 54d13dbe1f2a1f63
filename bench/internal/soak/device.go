//go:build linux

package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Faults of a round on a device; those that are killed are named with the state of the
// client that is killed, or whose device is.
const (
	faultClient = "client killed: "
	faultDevice = "device killed: "
	faultEnded  = "device ended: "
	faultStood  = "device stopped for a moment"
)

// soakedDevice soaks a device with processes.
type soakedDevice struct {
	o       *options
	address string
	device  *soakedProcess // nil: it is not ours to kill
}

// soakedRound is a round: its fault, and its clients, the first of which is the victim.
type soakedRound struct {
	fault, state string
	clients      []*soakProcess
}

// draw decides on the fault and the state of the victim.
func (s *soakedDevice) draw(chance *rand.Rand) soakedRound {
	states := slices.Sorted(maps.Keys(soakStates))
	faults := []string{faultClient}
	if s.device != nil {
		faults = append(faults, faultClient, faultDevice, faultDevice, faultEnded, faultStood)
	}
	return soakedRound{fault: faults[chance.IntN(len(faults))], state: states[chance.IntN(len(states))]}
}

// round draws what happens, and lets it happen.
func (s *soakedDevice) round(ctx context.Context, b *Books, chance *rand.Rand, length time.Duration) error {
	return s.play(ctx, b, s.draw(chance), length)
}

// play lets the clients go, injects the fault, lets the others go on, and asks them to
// end.
func (s *soakedDevice) play(ctx context.Context, b *Books, r soakedRound, length time.Duration) error {
	defer func() {
		for _, p := range r.clients {
			p.leave()
		}
	}()
	for i := range s.o.clients {
		j := soakJob{Address: s.address, Seed: b.Seed + b.Rounds*64 + uint64(i), Spoil: s.o.spoil, Mortal: s.device != nil}
		if i == 0 {
			j.State = r.state
		}
		p, err := startSoak(soakClientCommand, j)
		if err != nil {
			return err
		}
		r.clients = append(r.clients, p)
	}
	for _, p := range r.clients {
		if err := p.ready(); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	soakSleep(ctx, length/2)
	if err := s.inject(b, &r, length); err != nil {
		return err
	}
	soakSleep(ctx, length/2)
	s.books(b, &r)
	return s.device.settle(b, r.clients)
}

// inject makes the fault happen.
func (s *soakedDevice) inject(b *Books, r *soakedRound, length time.Duration) error {
	switch r.fault {
	case faultClient:
		r.clients[0].kill()
	case faultStood:
		s.device.freeze(min(length/4, 50*time.Millisecond))
		b.fault(r.fault)
		return nil
	case faultDevice:
		s.device.kill()
	case faultEnded:
		if err := s.device.end(); err != nil {
			b.wrong("device that was to end: %v", err)
		}
	}
	b.fault(r.fault + r.state)
	if r.fault == faultClient {
		return nil
	}
	return s.device.start()
}

// books asks the clients to end, and takes what they came to.
func (s *soakedDevice) books(b *Books, r *soakedRound) {
	for _, p := range r.clients {
		p.ask()
	}
	for i, p := range r.clients {
		if i == 0 && r.fault == faultClient {
			continue
		}
		end, err := p.end()
		b.add(end)
		reasons, lost := []string{soakAsked}, r.fault == faultDevice || r.fault == faultEnded
		if i == 0 && lost {
			reasons = append(reasons, soakNoDevice)
		}
		side := fmt.Sprintf("client %d (%s)", i, r.name(i))
		if b.ended(side, end, err, reasons...) && i > 0 && lost && end.Resets == 0 {
			b.wrong("%s did not notice that its device had ended", side)
		}
	}
}

// name is what a client did.
func (r *soakedRound) name(i int) string {
	if i == 0 {
		return r.fault + r.state
	}
	return "beside " + r.fault + r.state
}

// close ends the device, if it is ours.
func (s *soakedDevice) close() error {
	if s.device == nil {
		return nil
	}
	return s.device.end()
}

// soakSleep passes time, less if the user interrupts.
func soakSleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

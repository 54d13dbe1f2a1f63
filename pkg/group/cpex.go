package group

import "math/bits"

// pairing is one round of the complete pairwise exchange: whom rank sends to and
// whom it receives from in round 1 to size-1. In a group of a power of two each round
// pairs the members off; else the rounds shift.
func pairing(rank, size, round int) (to, from int) {
	if bits.OnesCount(uint(size)) == 1 {
		return rank ^ round, rank ^ round
	}
	return (rank + round) % size, (rank - round + size) % size
}

// cpex has one partner at a time: it starts the frame for the one, receives from the
// other, and continues when its frame is sent.
func cpex(s *exchangeStep) error {
	var f frame
	for round := 1; round < s.Size(); round++ {
		to, from := pairing(s.Rank(), s.Size(), round)
		if s.Sends(to) {
			if err := s.Start(to, s.Out(to)); err != nil {
				return err
			}
		}
		if s.Awaits(from) {
			if err := s.Receive(from, &f); err != nil {
				return err
			}
			if err := s.Deliver(&f); err != nil {
				return err
			}
		}
		if err := s.WaitAll(); err != nil {
			return err
		}
	}
	return nil
}

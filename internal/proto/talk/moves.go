package talk

import (
	"fmt"
	"strings"
)

// Moves is a party that plays a device, at which an end of a channel between hosts moves. The far end is
// that of a host f; the other one is that of s at first, and goes between s and r. These two have two other
// channels, a and b, of which the end goes through a.
//
// Conversations of moves are read by [LoadGuests], and have no lines of kinds. X is s or r in an EVENT:
//
//	X tickets, X tickets itself          TICKET of its end, through a, or through the channel itself
//	X claims, X claims old               CLAIM, by the other's last ticket, or the one before
//	X claims other, X claims own         … by the last one and its end of b; … by its own last ticket
//	X voids, X voids old                 VOID of its last ticket, or of the one before
//	X opens, X sends, X closes           OPEN, a message, CLOSE of both halves
//	X takes, X gives back, X ends        the answers to what it is offered; it detaches
//	X waits                              READY
//	f sends, f withdraws, f takes        as those
//	f begins                             a transfer, of which only the offer is a subject: nobody takes it
//	f asks                               OFFER: whether the other host waits
//	f shuts, f closes, f ends            CLOSE of its h2d half, and of both
//	a closes                             a host closes a
//	full, room                           r has as many channels with f as it may; it has not
//	look                                 whether a place is kept for any channel
//
// An ANSWER has for each of f, s and r the reply to its request, and the messages of the channel that it
// gets, with commas between: offer, or transfer, and its number, taken, back, ECLOSED, WITHDRAW, asked for
// OFFER, ready for READY, shut for CLOSE of one half, and CLOSE if both are by now.
type Moves interface {
	// OpenMoves begins a conversation.
	OpenMoves() error
	// Move makes something happen, and returns what the hosts observe then.
	Move(event string) (string, error)
}

// PlayMoves plays a conversation to a party.
func PlayMoves(c *GuestsTalk, m Moves) error {
	if err := m.OpenMoves(); err != nil {
		return err
	}
	if err := c.steps(m.Move, []string{"f ends", "s ends", "r ends"}, "free"); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

var _ Moves = (*Program)(nil)

// OpenMoves begins a conversation of an end that moves.
func (p *Program) OpenMoves() error {
	_, err := p.ask("moves open")
	return err
}

// Move makes something happen, and returns what is observed.
func (p *Program) Move(event string) (string, error) {
	words, err := p.ask("moves %s", event)
	if err != nil {
		return "", err
	}
	return strings.Join(words[1:], " "), nil
}

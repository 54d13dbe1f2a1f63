package proto_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// moveText is the document's text of an event of a channel whose end moves.
var moveText = map[proto.MoveInput]string{
	proto.MoveTicket:         "TICKET, through another channel",
	proto.MoveTicketItself:   "TICKET, through itself",
	proto.MoveClaim:          "CLAIM under the last ticket",
	proto.MoveClaimFull:      "CLAIM of a host that may have no further end",
	proto.MoveVoid:           "VOID of the last ticket",
	proto.MoveVoidOther:      "VOID of another ticket",
	proto.MoveGets:           "*gives* it to this host",
	proto.MoveOpens:          "OPEN",
	proto.MoveSends:          "the host offers something",
	proto.MoveTakes:          "the host takes it",
	proto.MoveGivesBack:      "WITHDRAWN",
	proto.MoveWaits:          "READY",
	proto.MoveCloses:         "the host closes both halves",
	proto.MoveEnds:           "the host detaches",
	proto.MoveOtherAsks:      "*asks*",
	proto.MoveOtherOffers:    "*offers*",
	proto.MoveOtherWithdraws: "*asks for its offer back*",
	proto.MoveOtherTakes:     "*took it*",
	proto.MoveOtherShuts:     "*closed its half*",
	proto.MoveOtherGone:      "*is gone*",
}

// moveDoes describes the reply to a request, the messages for the host, and what is sent.
func moveDoes(r proto.MoveRow) string {
	var does []string
	if r.Reply != proto.MoveSilent {
		does = append(does, "replies "+r.Reply.String())
	}
	for _, put := range []struct {
		puts proto.MovePuts
		text string
	}{
		{proto.MovePutOffer, "the offer"}, {proto.MovePutTaken, "ACK"}, {proto.MovePutRefused, "ERROR(ECLOSED)"},
		{proto.MovePutWithdraw, "WITHDRAW"}, {proto.MovePutAsk, "OFFER"}, {proto.MovePutShut, "CLOSE of d2h"}, {proto.MovePutClose, "CLOSE"},
	} {
		if r.Puts&put.puts != 0 {
			does = append(does, put.text)
		}
	}
	if r.Sends != proto.MoveNothing {
		does = append(does, fmt.Sprintf("sends *%v*", r.Sends))
	}
	return strings.Join(does, "; ")
}

// moveStand describes a state with its marks.
func moveStand(r proto.MoveRow) string {
	text := r.State.String()
	for m := proto.MoveOffered; m <= proto.MoveDue; m <<= 1 {
		if r.With&m != 0 {
			text += ", " + m.String()
		} else if r.Without&m != 0 {
			text += ", not " + m.String()
		}
	}
	return text
}

// moveDocument renders the transitions of a channel whose end moves.
func moveDocument(t *testing.T) string {
	var doc page
	for s := proto.MoveNone; s <= proto.MoveLeft; s++ {
		for _, r := range proto.MoveRows() {
			if r.State != s {
				continue
			}
			require.NotEmpty(t, moveText[r.Input], "no words for %v", r)
			next := r.Next.String()
			if marks := (r.With | r.Set) &^ r.Clear; marks != 0 && r.Next != proto.MoveNone && r.Next != proto.MoveAlone {
				next += ", " + strings.ReplaceAll(marks.String(), "+", ", ")
			}
			doc.add(moveStand(r), moveText[r.Input], moveDoes(r), next)
		}
	}
	return doc.table(sends, does)
}

package proto_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// dialText is the document's text of an event of a connection that a process opens.
var dialText = map[proto.DialInput]string{
	proto.DialConnects:  "*channel_connect*",
	proto.DialAsked:     "*asks*, and may connect",
	proto.DialInVain:    "*asks*, and may not",
	proto.DialAdmitted:  "*admits* it",
	proto.DialOpened:    "*opens* it",
	proto.DialRefused:   "*refuses* it",
	proto.DialOtherGone: "is *gone*",
	proto.DialNext:      "no message of the listener is unanswered",
	proto.DialTakes:     "the host acknowledges the message",
	proto.DialStops:     "the host refuses the message, or stops the listener",
	proto.DialOpens:     "OPEN, behind CONNECT if far",
	proto.DialCloses:    "both halves are closed here",
	proto.DialEnds:      "its process ends, or its host detaches",
	proto.DialNodeLost:  "the other node is lost",
}

// dialDoes describes the effect of a transition, and what it sends.
func dialDoes(r proto.DialRow) (text string) {
	of := "calls return"
	switch {
	case r.State == proto.DialAsking:
		of = "the call returns"
	case r.Input == proto.DialOpens:
		of = "OPEN returns"
	}
	status := "0"
	if r.Status != abi.OK {
		status = r.Status.String()
	}
	switch r.Does {
	case proto.DialReturns:
		text = fmt.Sprintf("%s %s", of, status)
	case proto.DialFails:
		text = of + " why"
	case proto.DialOffers:
		text = "DIRECT, the listener's message"
	case proto.DialClose:
		text = "CLOSE of both"
	case proto.DialOpensClosed:
		text = "OPEN returns 0; CLOSE of both"
	}
	if text != "" && r.Sends != proto.DialSilent {
		text += "; "
	}
	if r.Sends != proto.DialSilent {
		text += fmt.Sprintf("sends *%v*", r.Sends)
	}
	return text
}

// dialKind names the connections that a transition is of.
func dialKind(r proto.DialRow) string {
	switch {
	case r.With&proto.DialFar != 0:
		return ", far"
	case r.Without&proto.DialFar != 0:
		return ", near"
	}
	return ""
}

// dialDocument renders the transitions of one end: of all connections, or of those to hosts or to processes alone.
func dialDocument(t *testing.T, e proto.DialEnd, hosts, all bool) string {
	var doc page
	for s := proto.DialNone; s <= proto.DialAlone; s++ {
		for _, r := range proto.DialRows() {
			if r.End != e || r.State != s || !all && (r.With&proto.DialHost != 0) != hosts {
				continue
			}
			in := dialText[r.Input]
			switch {
			case r.Input == proto.DialLate && e == proto.DialCaller:
				in = "no answer in a second"
			case r.Input == proto.DialLate:
				in = "the host did not connect in ten seconds"
			case r.Input == proto.DialEnds && s == proto.DialAsking:
				in = "its process is to stop"
			}
			require.NotEmpty(t, in, "no words for %v", r)
			kind := dialKind(r)
			if all && r.With&proto.DialHost != 0 {
				kind = ", to a host" + kind
			} else if all && r.Without&proto.DialHost != 0 {
				kind = ", to a process" + kind
			}
			doc.add(s.String()+kind, in, dialDoes(r), r.Next.String())
		}
	}
	return doc.table(sends, does)
}

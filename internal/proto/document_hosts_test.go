package proto_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// connectionText is the document's text of an event of an end.
var connectionText = map[proto.DeviceInput]string{
	proto.HearReady:       "READY of the next id",
	proto.OtherMessage:    "*offers a message*",
	proto.OtherTransfer:   "*offers a transfer*",
	proto.OtherFits:       "*offers a transfer* of the size that is posted",
	proto.OtherWithdraws:  "*asks for its offer back*",
	proto.OtherAsks:       "*asks*",
	proto.OtherTook:       "*took it*",
	proto.OtherGaveBack:   "*gave it back*",
	proto.OtherRefused:    "*refused it*: ECLOSED, ESIZE or EKIND",
	proto.OtherFailed:     "*refused it* with another status",
	proto.OtherMoves:      "*takes it* by lists",
	proto.OtherMovesPages: "*takes it* by pages",
	proto.OtherStops:      "*stops*",
	proto.OtherFitsLate:   "*offers a transfer* of the size that is posted, and has closed or left it",
	proto.HearLate:        "IND_LIST or EAGER for an offer that its host has closed or left",
	proto.HostGone:        "its host detaches",
	proto.EngineMoved:     "half a window moved",
	proto.EngineQuiet:     "the engine is quiet, and the other host does not decide",
	proto.OtherReady:      "*is ready*",
	proto.OtherClosed:     "*closed its half*",
	proto.OtherGone:       "*is gone*",
	proto.Deadline:        "its time is over",
	proto.HearPages:       "EAGER under the next id, or of the size that is offered",
	proto.HearFin:         "FIN; of an offer: of no bytes",
}

// endDoes describes what an end puts, and the events that it sends to the other. The status may be one that was found.
func endDoes(put proto.Put, status abi.Status, events proto.News, found bool) string {
	var does []string
	switch {
	case put == proto.PutError && status == abi.OK:
		does = append(does, "ERROR with that status")
	case put == proto.PutError:
		does = append(does, fmt.Sprintf("ERROR(%v)", status))
	case put != proto.PutNothing:
		does = append(does, put.String())
	}
	switch {
	case events == proto.NewsGiveUp:
		does = append(does, "takes the other for gone")
	case events != 0:
		text, answer := events.String(), fmt.Sprintf("answered(%v)", status)
		if found {
			answer = "answered with that status"
		}
		if events&proto.NewsAnswered != 0 {
			text = strings.Replace(text, "answered", answer, 1)
		}
		does = append(does, "sends *"+strings.ReplaceAll(text, "+", "*, *")+"*")
	}
	return strings.Join(does, "; ")
}

// sends names the input of an end in the head of a table.
const sends = "what arrives, or what the other end *sends*"

// connectionDocument renders the transitions of one half of an end.
func connectionDocument(t *testing.T, d abi.Direction) string {
	var doc page
	for s := proto.DeviceIdle; s <= proto.DeviceCommit; s++ {
		for _, r := range proto.ConnectionRows() {
			if r.Direction == d && r.State == s {
				next := proto.ConnectionHalf{State: r.State, Marks: r.With}.From(r)
				puts := endDoes(r.Put, r.Status, r.Notify, r.Input == proto.HearRefuse || r.Input == proto.HearBadPages)
				if puts == "ERROR with that status" && r.Input == proto.EngineQuiet {
					puts = "ERROR with the status that ended it"
				}
				doc.add(stand(r.State, r.With, r.Without), words(t, r.Input, connectionText, deviceText), puts, stand(next.State, next.Marks, 0))
			}
		}
	}
	return doc.table(sends, does)
}

// endDocument renders the transitions of an end as a whole.
func endDocument(t *testing.T) string {
	texts := map[proto.EndInput]string{
		proto.EndConnects:     "CONNECT of the first host succeeds",
		proto.EndRefuses:      "the second host refuses the target",
		proto.EndSubscribes:   "OPEN",
		proto.EndOver:         "both halves are shut, and nothing moves",
		proto.EndOtherGone:    "*is gone*",
		proto.EndHostDetaches: "its host detaches",
	}
	var doc page
	for _, r := range proto.EndRows() {
		require.NotEmpty(t, texts[r.Input], "no words for %v", r)
		doc.line(r.State.String(), texts[r.Input], endDoes(r.Put, 0, r.Notify, false), r.Next.String())
	}
	return doc.table(sends, does)
}

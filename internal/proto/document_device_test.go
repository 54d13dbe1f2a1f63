package proto_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// deviceText is the document's text of an input of the device, where its name says too little.
var deviceText = map[proto.DeviceInput]string{
	proto.HearMessage:   "DIRECT under the next id",
	proto.HearBegin:     "IND_BEGIN under the next id",
	proto.HearBadBegin:  "IND_BEGIN or EAGER under the next id that breaks a rule",
	proto.HearBadPages:  "EAGER for what is offered, which breaks a rule",
	proto.HearPost:      "EAGER for the next id",
	proto.HearList:      "IND_LIST, the next one",
	proto.HearFirstList: "IND_LIST 0 of several",
	proto.HearBadList:   "IND_LIST out of turn, or malformed",
	proto.HearUnpost:    "WITHDRAW of the next id",
	proto.HearOffer:     "OFFER of the next id",
	proto.HearClose:     "CLOSE of this half",
	proto.Take:          "*the process takes it*: kind and size fit",
	proto.HearCall:      "CALL under the next id",
	proto.TakeQuestion:  "*channel_question takes it*",
	proto.Reply:         "*channel_reply*",
	proto.TakeEmpty:     "*the process takes it*: no bytes",
	proto.TakeShort:     "*what is offered is longer than the room that it gives*",
	proto.TakeOther:     "*it reads another kind*",
	proto.TakeSize:      "*it reads another size*",
	proto.TakeRange:     "*it reads into what is no memory*",
	proto.Wait:          "*it waits for an offer, or looks for one*",
	proto.Read:          "*it reads*",
	proto.GiveMessage:   "*channel_write*",
	proto.GiveTransfer:  "*channel_write_ind*, of another size than is posted",
	proto.GivePosted:    "*channel_write_ind* of the size that is posted",
	proto.Stop:          "*it is to stop*",
	proto.CloseHalf:     "*channel_close*",
	proto.Deadline:      "nobody took it in time",
	proto.EngineMoved:   "half a window moved",
	proto.EngineBusy:    "a page is busy for now",
	proto.EngineFailed:  "a page cannot be reached",
	proto.EngineDone:    "all bytes moved",
	proto.EngineQuiet:   "the engine is quiet",
}

// marks are those of a half, of the device or of an end.
type marks interface {
	proto.DeviceMarks | proto.ConnectionMarks
	fmt.Stringer
}

// stand describes a state of a half with its marks.
func stand[M marks](s proto.DeviceState, with, without M) string {
	text := s.String()
	for i := range 16 {
		m := M(1) << i
		switch {
		case with&m != 0:
			text += ", " + m.String()
		case without&m != 0:
			text += ", not " + m.String()
		}
	}
	return text
}

// deviceDoes describes what a transition puts, and what the process's call returns.
func deviceDoes(r proto.DeviceRow) string {
	var does []string
	switch puts := r.Put.String(); {
	case r.Put == proto.PutError && r.Status == abi.OK:
		does = append(does, "ERROR with what is wrong, or why it ends")
	case r.Put == proto.PutError:
		does = append(does, fmt.Sprintf("ERROR(%v)", r.Status))
	case r.Put == proto.PutConsumed && r.Status != abi.OK:
		does = append(does, fmt.Sprintf("ACK(CONSUMED, %v)", r.Status))
	case r.Put != proto.PutNothing:
		does = append(does, puts)
	}
	switch {
	case r.Return == proto.Succeeds:
		does = append(does, "the call returns 0, or the bytes")
	case r.Return == proto.Fails && r.Status != abi.OK:
		does = append(does, fmt.Sprintf("the call returns %v", r.Status))
	case r.Return == proto.Fails:
		does = append(does, "the call returns the status")
	case r.Set&proto.DeviceEnding != 0:
		does = append(does, "no piece starts any more")
	}
	return strings.Join(does, "; ")
}

// words is the document's text of an input by the first of these that has one, else the input's name.
func words(t *testing.T, in proto.DeviceInput, texts ...map[proto.DeviceInput]string) string {
	for _, of := range texts {
		if text, ok := of[in]; ok {
			return text
		}
	}
	require.True(t, in.ByHost(), "no words for %v", in)
	return in.String()
}

// deviceTable renders the device's transitions of one half.
func deviceTable(t *testing.T, d abi.Direction) string {
	var doc page
	for s := proto.DeviceIdle; s <= proto.DeviceTaken; s++ {
		for _, r := range proto.DeviceRows() {
			if r.Direction == d && r.State == s {
				next := proto.DeviceHalf{State: r.State, Marks: r.With}.From(r)
				doc.add(stand(r.State, r.With, r.Without), words(t, r.Input, deviceText), deviceDoes(r), stand(next.State, next.Marks, 0))
			}
		}
	}
	return doc.table("what comes, or what the process *does*", does)
}

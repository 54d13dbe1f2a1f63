//go:build cgo

package proto_test

import (
	"testing"

	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	betweenHosts = append(betweenHosts, party[talk.Hosts]{"firmware", func(t *testing.T) talk.Hosts { return firmware(t) }})
}

// TestSeededChangesBetweenHosts: firmware with a defect in one transition of an end fails a conversation.
func TestSeededChangesBetweenHosts(t *testing.T) {
	requireFound(t, hostTalks(t), talk.PlayHosts, []defect{
		{"any status of the other host arrives", "core/forward.c", "status = NFC_EABORTED; /* whatever", "status = status; /* whatever"},
		{"a closed half is offered a message", "core/forward.c", "if (half->closed) {\n\t\tnfc_relay_answer(ch, NFC_ECLOSED, 0);\n\t\treturn;\n\t}", ""},
		{"the host that has all bytes does not decide", "core/relay.c", "give->ending = NFC_OK; /* also", "give->ending |= NFC_OK; /* also"},
		{"pages that are taken by pages are taken back", "core/pair.c", "if (t->eager && t->peer && !t->peer->eager)", "if (t->eager && t->peer)"},
		{"a second list ends an offer at one end alone", "core/manager.c", "half->state == NFC_HALF_OFFERED && ch->relay", "half->state == NFC_HALF_OFFERED && !ch"},
	})
}

//go:build cgo

package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	betweenHosts = append(betweenHosts, party[talk.Hosts]{"firmware", func(t *testing.T) talk.Hosts { return firmware(t) }})
}

// TestSeededChangesBetweenHosts: firmware with a defect in one transition of an end fails a conversation.
func TestSeededChangesBetweenHosts(t *testing.T) {
	list := hostTalks(t)
	for _, c := range []struct{ name, file, before, after string }{
		{"any status of the other host arrives", "core/forward.c", "status = NFC_EABORTED; /* whatever", "status = status; /* whatever"},
		{"a closed half is offered a message", "core/forward.c", "if (half->closed) {\n\t\tnfc_relay_answer(ch, NFC_ECLOSED, 0);\n\t\treturn;\n\t}", ""},
		{"a second list ends an offer at one end alone", "core/manager.c", "half->state == NFC_HALF_OFFERED && ch->relay", "half->state == NFC_HALF_OFFERED && !ch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := seeded(t, "firmware", c.file, c.before, c.after)
			var found error
			for _, talks := range list {
				if found == nil {
					found = talk.PlayHosts(talks, p)
				}
			}
			require.Error(t, found, "no conversation notices")
		})
	}
}

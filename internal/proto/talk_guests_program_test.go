//go:build cgo

package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	guests = append(guests, party[talk.Guests]{"firmware", func(t *testing.T) talk.Guests { return firmware(t) }})
}

// TestWalkGuests: whatever a process that connects and its target do, the rows and the firmware do the same.
func TestWalkGuests(t *testing.T) {
	dial, err := proto.NewDial(proto.DialRows())
	require.NoError(t, err)
	w := talk.NewGuestsWalk(dial, firmware(t), *walkSeed)
	for i := range *walkSteps / 2000 { // each conversation boots two devices
		require.NoError(t, w.Step(), "step %d (-walk.seed %d)", i, *walkSeed)
	}
}

// TestSeededChangesOfGuests: firmware with a defect in one transition fails a conversation.
func TestSeededChangesOfGuests(t *testing.T) {
	requireFound(t, guestTalks(t), talk.PlayGuests, []defect{
		{"a process that closes keeps its place", "core/relay.c", "if (both && leaves_queue(ch))", "if (!ch && leaves_queue(ch))"},
		{"a listener that ends leaves its queue", "core/listen.c", "while (next_waiting(dev, l, true, &word))", "while (!l && next_waiting(dev, l, true, &word))"},
		{"a port stays with a caller whose node is lost", "core/joint.c", "if (ch && events & NFC_JOINT_LOST)", "if (!ch && events & NFC_JOINT_LOST)"},
		{"a process waits for a host that does not connect", "link/span.c", "if (ready(s, &s->come_ns))", "if (!s->come_ns)"},
	})
}

//go:build cgo

package proto_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// TestSeededChangesOfPrograms: a program with a defect in one transition fails a conversation.
func TestSeededChangesOfPrograms(t *testing.T) {
	list := conversations(t)
	for _, c := range []struct{ name, tree, file, before, after string }{
		{"a message that is delivered stays", "kmod", "core/classify.c", "h->state = NFCM_STATE_IDLE;\n\t\tout->event = NFCM_EVENT_DELIVERED;", "out->event = NFCM_EVENT_DELIVERED;"},
		{"a held offer is recalled", "kmod", "core/classify.c", "else if (h->held) {", "else if (!h) {"},
		{"a second offer replaces the first", "kmod", "core/classify.c", "if (h->state != NFCM_STATE_IDLE && h->state != NFCM_STATE_POSTED) {", "if (h->state == NFCM_STATE_MOVING) {"},
		{"a transfer is given back that its target has", "kmod", "core/classify.c", "return false; /* the target has it */", "return true;"},
		{"a repeat is forgiven once more", "kmod", "core/ledger.c", "++l->tries > NFC_REPEATS_MAX", "l->tries++ > NFC_REPEATS_MAX"},
		{"pages are given back that nobody wanted back", "kmod", "core/classify.c", "return h->recall && h->state == NFCM_STATE_POSTED;", "return h->state == NFCM_STATE_POSTED;"},
		{"an eager transfer ends with bytes missing", "kmod", "core/classify.c", "type == NFC_TYPE_ACK && r->processed != h->size", "!type"},
		{"pages are kept that something else was offered for", "firmware", "core/channel.c", "ch->posted = 0; /* the host finds that it does not fit */", ""},
		{"pages that are used are given back, too", "firmware", "core/channel.c", "	ch->posted = 0;\n	ch->begin_ns", "	ch->begin_ns"},
		{"a closed half lets an offer in", "firmware", "core/manager.c", "return !status;", "return true;"},
		{"a process that closes one half answers for the other", "firmware", "core/channel.c", "if (halves & 1 << NFC_H2D)\n\t\tnfc_send_ready(ch);", "nfc_send_ready(ch);"},
		{"a process hears of no close", "firmware", "core/note.c", "half->notice = 1;", ""},
		{"an offer that is asked back is kept", "firmware", "core/offer.c", "nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_H2D, ch->recall_id);", ";"},
	} {
		t.Run(c.tree+"/"+c.name, func(t *testing.T) {
			p := seeded(t, c.tree, c.file, c.before, c.after)
			require.Error(t, playAll(list, p, c.tree == "kmod"), "no conversation notices")
		})
	}
}

// playAll plays what a side plays, and returns the first failure.
func playAll(list []*talk.Conversation, p *talk.Program, host bool) error {
	for _, c := range list {
		var err error
		switch {
		case host && c.DeviceOnly == "":
			err = talk.PlayHost(c, p)
		case !host && c.HostOnly == "":
			err = talk.PlayDevice(c, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// defect is a piece of the firmware's text that is replaced.
type defect struct{ name, file, before, after string }

// requireFound: firmware with any one of the defects fails a conversation.
func requireFound[T, P any](t *testing.T, list []T, play func(talks T, p P) error, defects []defect) {
	t.Helper()
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			p := any(seeded(t, "firmware", d.file, d.before, d.after)).(P)
			notices := func(talks T) bool { return play(talks, p) != nil }
			require.True(t, slices.ContainsFunc(list, notices), "no conversation notices")
		})
	}
}

// seeded builds a tree's party with one piece of its text replaced, and starts it. The piece is back
// when the test ends.
func seeded(t *testing.T, tree, file, before, after string) *talk.Program {
	t.Helper()
	path := filepath.Join(sources(t), tree, file)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), before), "the text to replace in %s/%s", tree, file)
	write := func(text string) {
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	write(strings.Replace(string(text), before, after, 1))
	t.Cleanup(func() { write(string(text)) }) // newer than what was built of the other
	args := []string{"SANITIZE="}
	if tree == "kmod" {
		args = append(args, "CFLAGS=-std=c11 -D_GNU_SOURCE -O0 -I../core -I../../firmware -I../../firmware/test")
	}
	p := build(t, tree, args...)
	t.Cleanup(func() { _ = p.Close() }) // one that a defect ends has an exit status
	return p
}

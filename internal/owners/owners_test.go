package owners

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ranges are owners over a file of their own and two users.
func ranges(t *testing.T, text string) *Owners {
	o := New()
	o.file = filepath.Join(t.TempDir(), "subuid")
	require.NoError(t, os.WriteFile(o.file, []byte(text), 0o644))
	users := map[string]uint32{"alice": 1000, "bob": 1001}
	o.known = func(uid uint32) bool { return uid == 0 || uid == 1000 || uid == 1001 }
	o.id = func(name string) (uint32, bool) {
		id, ok := users[name]
		return id, ok
	}
	return o
}

// TestUserIDsOfNamespaces: those that /etc/subuid gives to a user are the user's,
// and those that nobody knows are one caller.
func TestUserIDsOfNamespaces(t *testing.T) {
	o := ranges(t, "bob:165536:65536\nalice:100000:65536\n# no range\nnobody-here:900000:10\n1002:1000000:10\nbob:x:1\nbob:5:0\n")
	for uid, want := range map[uint32]string{
		0: "uid 0", 1000: "uid 1000", 1001: "uid 1001", 4711: Others, 99_999: Others, 100_000: "uid 1000", 165_535: "uid 1000",
		165_536: "uid 1001", 231_071: "uid 1001", 231_072: Others, 900_005: Others, 1_000_009: "uid 1002", 1_000_010: Others, 1<<32 - 1: Others,
	} {
		require.Equal(t, want, o.Of(uid, nil), "%d", uid)
		grouped := want
		if want == Others {
			grouped = "others in /pod"
		}
		asked := false
		require.Equal(t, grouped, o.Of(uid, func() string { asked = true; return "/pod" }), "%d", uid)
		require.Equal(t, want == Others, asked, "%d: the group of a user that is known is not asked for", uid)
	}
	require.NoError(t, os.WriteFile(o.file, []byte("bob:100000:10\n"), 0o644))
	require.Equal(t, "uid 1001", o.Of(100_000, nil), "the file is read again")
	require.NoError(t, os.Remove(o.file))
	require.Equal(t, Others, o.Of(100_000, nil))
	for uid := range uint32(2 * mostSeen) {
		o.Of(uid, nil)
	}
	require.LessOrEqual(t, len(o.seen), mostSeen)
}

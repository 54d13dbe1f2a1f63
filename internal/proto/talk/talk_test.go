package talk

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// TestLoadRefuses: bad files are named with the line.
func TestLoadRefuses(t *testing.T) {
	const good = "talk good\n> DIRECT 1\n< ACK 1 CONSUMED\n= delivered idle\n"
	for _, c := range []struct{ text, line, want string }{
		{"talk a\nsay hello", "2", `unknown word "say"`},
		{"> DIRECT 1", "1", "before the first talk"},
		{"talk", "1", "without a name"},
		{"talk a\ntalk b", "2", "is empty"},
		{"talk a\n> HOWDY 1", "2", `unknown type "HOWDY"`},
		{"talk a\n> 128 1", "2", `unknown type "128"`},
		{"talk a\n> DIRECT", "2", "transaction is missing"},
		{"talk a\n> DIRECT one", "2", `unknown transaction "one"`},
		{"talk a\n>", "2", "a slot is missing"},
		{"talk a\n> DIRECT 1 loudly", "2", `unknown word "loudly"`},
		{"talk a\n> DIRECT 1 volume=3", "2", `unknown word "volume=3"`},
		{"talk a\n> DIRECT 1 length=long", "2", `unknown number`},
		{"talk a\n> DIRECT 1 length=1 length=2", "2", "length twice"},
		{"talk a\n> DIRECT 1\n< ACK 1 CONSUMED", "3", "without what the host makes of it"},
		{"talk a\n> DIRECT 1\n< ACK 1 CONSUMED\n> DIRECT 2", "4", "without what the host makes of it"},
		{"talk a\n= delivered idle", "2", "follows no"},
		{good + "= delivered idle", "5", "follows no"},
		{"talk a\n> DIRECT 1\n< ACK 1 CONSUMED\n= taken idle", "4", `unknown event "taken"`},
		{"talk a\n> DIRECT 1\n< ACK 1 CONSUMED\n= delivered home", "4", `unknown state "home"`},
		{"talk a\n> DIRECT 1\n< ACK 1 CONSUMED\n= delivered", "4", "without a state"},
		{"talk a\n> DIRECT 1\n< WITHDRAWN 1\n= fault idle", "4", "has no state"},
		{"talk a\n> DIRECT 1\n< WITHDRAWN 1\n= fault\n> WITHDRAW 1", "5", "the end of a conversation"},
		{"talk a\n> DIRECT 1\n< WITHDRAWN 1\n= withdrawn idle", "3", "not by the table"},
		{"talk a\n> DIRECT 1\n< ACK 1 CONSUMED\n= delivered offered", "3", "not by the table"},
		{"talk a\n> FIN 1", "2", "not by the table"},
		{"talk a\n> DIRECT 2", "2", "not by the table"},
		{"talk a\n> IND_BEGIN 1 size=8\n> IND_LIST 1", "3", "list=N is missing"},
		{"talk a\n> IND_BEGIN 1 size=8\n> IND_LIST 1 list=1", "3", "not by the table"},
		{"talk a\nhost sings", "2", "unknown words"},
		{"talk a\ntarget sings", "2", "unknown call"},
		{"talk a\ntarget read", "2", "unknown call"},
		{"talk a\ntarget read much", "2", "unknown argument"},
		{"talk a\ntarget close 3", "2", "unknown argument"},
		{"talk a\ntarget returns EWHAT", "2", "unknown result"},
		{"talk a\ntarget", "2", "is missing"},
		{"talk a\ndevice sings", "2", "unknown words"},
		{"talk a\ndevice busy", "2", "unknown words"},
		{"talk a\ndevice busy often", "2", "unknown number"},
		{"talk a\nonly me: why", "2", "unknown words"},
		{"talk a\nonly host:", "2", "unknown words"},
		{"talk a\nnot by calls:", "2", "unknown words"},
		{"talk a\nnot by me: why", "2", "unknown words"},
		{"talk a\nhalf full", "2", "unknown words"},
		{"talk a\nopen door=1", "2", "unknown word"},
		{"talk a\n> DIRECT 1\nhalf d2h", "3", "after the first step"},
		{good + good, "5", "the name is that of a.talk:1"},
		{good + "talk other\n> DIRECT 1\n< ACK 1 CONSUMED\n= delivered idle", "5", "the conversation is that of a.talk:1"},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := Load(fstest.MapFS{"a.talk": {Data: []byte(c.text)}}, proto.Default())
			require.ErrorContains(t, err, "a.talk:"+c.line+": ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestProgramThatEnds: a party in another process that cannot be talked to is an error, no hang.
func TestProgramThatEnds(t *testing.T) {
	p, err := Start("true")
	require.NoError(t, err)
	err = p.Open(&Open{})
	require.Error(t, err)
	require.NoError(t, p.Close())
}

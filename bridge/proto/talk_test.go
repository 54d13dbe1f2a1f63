package proto_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/proto"
	"github.com/nfcomms/nfcomms/bridge/proto/talk"
)

// party is who replays conversations. New parties are added to the lists below, each in a file
// of its own that builds or finds what it needs.
type party[P any] struct {
	name string
	make func(t *testing.T) P
}

var (
	hosts = []party[talk.Host]{
		{"proto", func(*testing.T) talk.Host { return &talk.Model{Table: proto.Default()} }},
	}
	devices []party[talk.Device]
)

func conversations(t *testing.T) []*talk.Conversation {
	t.Helper()
	list, err := talk.Load(os.DirFS("testdata"), proto.Default())
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// TestTalk replays every conversation to every party of the side it is for.
func TestTalk(t *testing.T) {
	list := conversations(t)
	var h []talk.Host
	for _, p := range hosts {
		h = append(h, p.make(t))
	}
	var d []talk.Device
	for _, p := range devices {
		d = append(d, p.make(t))
	}
	for _, c := range list {
		t.Run(c.Name, func(t *testing.T) {
			for i := 0; i < len(h) && !c.DeviceOnly; i++ {
				require.NoError(t, talk.PlayHost(c, h[i]), hosts[i].name)
				t.Logf("replayed by %s", hosts[i].name)
			}
			for i := 0; i < len(d) && !c.HostOnly; i++ {
				require.NoError(t, talk.PlayDevice(c, d[i]), devices[i].name)
				t.Logf("replayed by %s", devices[i].name)
			}
		})
	}
}

// TestTalkCoversTheTable requires that a conversation follows each transition.
func TestTalkCoversTheTable(t *testing.T) {
	m := &talk.Model{Table: proto.Default(), Used: map[int]bool{}}
	for _, c := range conversations(t) {
		if !c.DeviceOnly {
			require.NoError(t, talk.PlayHost(c, m))
		}
	}
	for i, r := range m.Table.Rows() {
		if !m.Used[i] {
			t.Errorf("no conversation follows: %v", r)
		}
	}
}

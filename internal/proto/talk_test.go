package proto_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// party is an implementation that replays conversations. New parties are added to the lists below,
// each in a file of its own that builds or finds its needs.
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

// TestTalk replays every conversation to every party of the side it is for, and names those that
// replayed it, and why the others do not. The back end over the kernel module replays them in a test
// of the same name in internal/kdev.
func TestTalk(t *testing.T) {
	list := conversations(t)
	h, d := made(t, hosts), made(t, devices)
	for _, c := range list {
		t.Run(c.Name, func(t *testing.T) {
			for i, p := range hosts {
				replayed(t, p.name, c.DeviceOnly, func() error { return talk.PlayHost(c, h[i]) })
			}
			for i, p := range devices {
				cannot := c.HostOnly
				if p.name == "scripted" {
					cannot += c.NotByScript
				}
				replayed(t, p.name, cannot, func() error { return talk.PlayDevice(c, d[i]) })
			}
		})
	}
}

// made makes the parties of a list.
func made[P any](t *testing.T, list []party[P]) (all []P) {
	t.Helper()
	for _, p := range list {
		all = append(all, p.make(t))
	}
	return all
}

// foundOut returns by what a device with a change is found out: a conversation, or the walk beside one
// without.
func foundOut[T any](t *testing.T, change string, list []T, play func(talks T) error, steps int, step func() error) string {
	t.Helper()
	if slices.ContainsFunc(list, func(talks T) bool { return play(talks) != nil }) {
		return "by conversations"
	}
	for range steps {
		if step() != nil {
			return "by the walk"
		}
	}
	t.Errorf("nothing notices a device %s", change)
	return "by nothing"
}

// replayed has a party replay a conversation, unless there is a reason why it cannot.
func replayed(t *testing.T, name, cannot string, play func() error) {
	t.Helper()
	if cannot != "" {
		t.Logf("not by %s: %s", name, cannot)
		return
	}
	require.NoError(t, play(), name)
	t.Logf("replayed by %s", name)
}

// TestTalkCoversTheTable requires that a conversation follows each transition.
func TestTalkCoversTheTable(t *testing.T) {
	m := &talk.Model{Table: proto.Default(), Used: map[int]bool{}}
	for _, c := range conversations(t) {
		if c.DeviceOnly == "" {
			require.NoError(t, talk.PlayHost(c, m))
		}
	}
	for i, r := range m.Table.Rows() {
		if !m.Used[i] {
			t.Errorf("no conversation follows: %v", r)
		}
	}
}

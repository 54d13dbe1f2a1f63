package bridgetest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// dial opens a channel to a name, as the listening host lets others in.
func (p *hostPair) dial(name string) (bridge.Channel, error) {
	return p.connects.(bridge.HostListener).Dial(p.Ctx(), name, bridge.DialOptions{Anyone: p.options.Anyone})
}

// listenAs listens by a name.
func (p *hostPair) listenAs(name string) (bridge.Listener, error) { return p.listenAt(p.listens, name) }

// listenAt has a host listen by a name.
func (p *hostPair) listenAt(host bridge.Device, name string) (bridge.Listener, error) {
	o := p.options
	o.Name = name
	return host.(bridge.HostListener).Listen(p.Ctx(), o)
}

// hostNames: a name leads to the one listener that has it, from the time it listens until it closes.
func hostNames(p *hostPair) {
	longest := strings.Repeat("n", 23)
	names := []string{"thumbnails", "Thumbnails", "a", longest, "a.0_-"}
	listeners := map[string]bridge.Listener{}
	for _, name := range names {
		_, err := p.dial(name)
		require.ErrorIs(p, err, bridge.ErrNotSubscribed, name)
		listeners[name], err = p.listenAs(name)
		require.NoError(p, err, name)
		_, err = p.listenAs(name)
		require.ErrorIs(p, err, bridge.ErrBusy, name)
	}
	for name, l := range listeners {
		near, err := p.dial(name)
		require.NoError(p, err, name)
		require.Equal(p, l.Target(), near.Target())
		far, err := l.Accept(p.Ctx())
		require.NoError(p, err)
		sent := p.gives(p.Ctx(), near, []byte(name))
		p.takes(far, []byte(name))
		require.NoError(p, <-sent)
	}
	for name, l := range listeners {
		require.NoError(p, l.Close())
		_, err := p.dial(name)
		require.ErrorIs(p, err, bridge.ErrNotSubscribed, name)
		again, err := p.listenAs(name)
		require.NoError(p, err, "the name is free")
		require.NoError(p, again.Close())
	}
}

// hostWrongNames: other texts are refused, and none of them is found.
func hostWrongNames(p *hostPair) {
	for _, name := range []string{"a b", "é", "\x1b[2J", "a\x00", "a/b", "/a", "7", ".a", "a\n", strings.Repeat("n", 24)} {
		_, err := p.listenAs(name)
		require.ErrorIs(p, err, bridge.ErrInvalid, "%q", name)
		_, err = p.dial(name)
		require.ErrorIs(p, err, bridge.ErrInvalid, "%q", name)
	}
	_, err := p.dial("")
	require.ErrorIs(p, err, bridge.ErrInvalid)
}

// hostNameGoes: the name of a host that was reset is free for another.
func hostNameGoes(p *hostPair) {
	_, err := p.listenAs("mail")
	require.NoError(p, err)
	require.NoError(p, p.listens.Reset(p.Ctx()))
	_, err = p.dial("mail")
	require.ErrorIs(p, err, bridge.ErrNotSubscribed)
	_, err = p.listenAt(p.connects, "mail")
	require.NoError(p, err)
}

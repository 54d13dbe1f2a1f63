//go:build cgo

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestProgramsHaveTheirStacks: each process has the stack that its program asks for,
// whichever ran in its context before.
func TestProgramsHaveTheirStacks(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "contexts=1&microengines=8") // those of the services, and two
	defer dev.Close()
	load(ctx, t, dev, build(t, "deep.c"))
	for range 3 {
		for name, use := range map[string]uint64{"roomy": 1000 << 10, "narrow": 8 << 10, "loopback": 0} {
			for range 2 {
				p, err := dev.Start(ctx, bridge.Program{Name: name, Targets: 1, Argument: use})
				require.NoError(t, err)
				ch, err := dev.Subscribe(ctx, p.First)
				require.NoError(t, err)
				if use > 0 {
					_, used := ask(ctx, t, ch)
					require.Equal(t, use, used)
				} else {
					require.NoError(t, ch.Send(ctx, []byte("through")))
				}
				require.NoError(t, dev.Stop(ctx, p.ID))
				require.NoError(t, ch.Close())
			}
		}
	}
}

// TestStackIsBounded: an image whose program asks for more than there is to have is
// refused by a name of its own, and the log has the reason.
func TestStackIsBounded(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "")
	_, err := dev.Load(ctx, build(t, "deep.c", "STACK=(16<<20)+1"))
	require.ErrorIs(t, err, bridge.ErrTooLarge)
	name, err := dev.Load(ctx, build(t, "deep.c", "STACK=16<<20"))
	require.NoError(t, err)
	p, err := dev.Start(ctx, bridge.Program{Name: name, Targets: 1, Argument: 16<<20 - 8<<10})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	ask(ctx, t, ch)
	require.NoError(t, dev.Close())
	require.Contains(t, log.String(), "asks for a stack over 16 MiB")
}

// TestLoadOnTheSmallestStack: what runs a program's image into the process fits on the
// stack that a device gives its services.
func TestLoadOnTheSmallestStack(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "stack=16KiB")
	defer dev.Close()
	load(ctx, t, dev, answerer(t, "answer", 3))
	tag, _, _ := answerTo(ctx, t, dev, "answer", 1)
	require.EqualValues(t, 3, tag)
}

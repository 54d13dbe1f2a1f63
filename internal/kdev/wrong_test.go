//go:build cgo

package kdev

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/kdev/umod"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// scriptedModule is a fake module over a scripted device.
func scriptedModule(t *testing.T, s *scripted.Device, o *mailbox.Options) *fakeModule {
	t.Helper()
	dev, err := mailbox.Open(t.Context(), s, bridge.Info{Address: "script:", Driver: "script"}, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return moduleOver(dev, umod.Options{})
}

// wrongCalls are the calls of the catalogue, each on a loopback.
var wrongCalls = map[string]func(ctx context.Context, ch bridge.Channel) error{
	"Send": func(ctx context.Context, ch bridge.Channel) error { return ch.Send(ctx, []byte("message")) },
	"Receive": func(ctx context.Context, ch bridge.Channel) error {
		if err := ch.Send(ctx, []byte("message")); err != nil {
			return err
		}
		_, err := ch.Receive(ctx, make([]byte, abi.PayloadSize))
		return err
	},
	"SendInd": func(ctx context.Context, ch bridge.Channel) error { return ch.SendInd(ctx, make([]byte, 1<<20)) },
	"ReceiveInd": func(ctx context.Context, ch bridge.Channel) error {
		if err := ch.SendInd(ctx, make([]byte, 1<<20)); err != nil {
			return err
		}
		return ch.ReceiveInd(ctx, make([]byte, 1<<20))
	},
}

// TestWrongReplies: what a host makes of each row of the catalogue comes through
// the module's interface as the same error, or as none.
func TestWrongReplies(t *testing.T) {
	for i := range scripted.Catalogue {
		w := &scripted.Catalogue[i]
		call := wrongCalls[w.In]
		waits := w.Want == scripted.Lost || w.Want == scripted.Waits // for seconds, and no reply is the same here
		if call == nil || waits || w.Want == scripted.Undecided || w.Still || w.Astray {
			continue
		}
		t.Run(w.In+"/"+w.Name, func(t *testing.T) {
			s, err := scripted.New(scripted.Shape{}, scripted.Hooks{})
			require.NoError(t, err)
			dev := opened(t, scriptedModule(t, s, nil))
			ch, err := dev.Subscribe(patience(t), abi.TargetLoopback)
			require.NoError(t, err)
			seen := -1
			s.SetHooks(scripted.Hooks{Give: func(m wire.Slot) []wire.Slot {
				if !w.Match(&m) {
					return []wire.Slot{m}
				}
				if seen++; seen != w.Nth {
					return []wire.Slot{m}
				}
				return w.Alter(nil, m, nil)
			}})
			err = call(patience(t), ch)
			switch w.Want {
			case scripted.Faulted:
				require.ErrorIs(t, err, bridge.ErrFault)
				require.ErrorIs(t, ch.Send(patience(t), nil), bridge.ErrFault)
			case scripted.Refused:
				status, _ := bridge.StatusOf(err)
				require.Equal(t, w.Status, status, "%v", err)
			default:
				require.NoError(t, err)
			}
			s.SetHooks(scripted.Hooks{})
			require.NoError(t, dev.Reset(patience(t)))
		})
	}
}

package scripted

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// handlerFunc is a log handler that is a function.
type handlerFunc func(r slog.Record)

func (h handlerFunc) Enabled(context.Context, slog.Level) bool { return true }

func (h handlerFunc) Handle(_ context.Context, r slog.Record) error {
	h(r)
	return nil
}

func (h handlerFunc) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h handlerFunc) WithGroup(string) slog.Handler      { return h }

// TestLogHandlerThatBlocks: a handler that never returns holds up neither the
// fence, nor the calls that wait, nor Reset, nor Close.
func TestLogHandlerThatBlocks(t *testing.T) {
	e := bridgetest.NewEnv(t)
	release := make(chan struct{})
	defer close(release)
	r := newRigWith(e, quickBeat, slog.New(handlerFunc(func(slog.Record) { <-release })))
	port := r.Ports(r.dev, "hold", 1)[0]
	send := bridgetest.Call("send", func() error { return port.Send(r.Ctx(), nil) })
	r.UntilBlocked(r.dev, 1)
	r.s.StopBeat()
	require.ErrorIs(t, r.Wait(send), bridge.ErrDeviceLost)
	r.recovers()
	r.s.Kill()
	closing := bridgetest.Call("close", r.dev.Close)
	require.NoError(t, r.Wait(closing))
}

// TestLogHandlerThatCallsBack: a handler may use the device it hears from.
func TestLogHandlerThatCallsBack(t *testing.T) {
	e := bridgetest.NewEnv(t)
	type heard struct {
		*rig
		name          string
		receive, back *bridgetest.Pending
	}
	var all []heard
	for name, do := range map[string]func(r *rig) error{
		"Stats":  func(r *rig) error { r.dev.Stats(); return nil },
		"Health": func(r *rig) error { _, err := r.dev.Health(); return err },
		"Reset":  func(r *rig) error { return r.dev.Reset(r.Ctx()) },
		"Close":  func(r *rig) error { return r.dev.Close() },
	} {
		var r *rig
		called := make(chan error, 1)
		r = newRigWith(e, quickBeat, slog.New(handlerFunc(func(slog.Record) {
			select {
			case called <- do(r):
			default: // a later record
			}
		})))
		ch := r.Subscribe(r.dev, abi.TargetLoopback)
		receive := bridgetest.Call("receive", func() error { _, err := ch.Receive(r.Ctx(), nil); return err })
		r.UntilBlocked(r.dev, 1)
		r.s.StopBeat()
		all = append(all, heard{r, name, receive, bridgetest.Call("handler", func() error { return <-called })})
	}
	for _, h := range all {
		require.Error(t, e.Wait(h.receive), h.name)
		err := e.Wait(h.back)
		if h.name == "Health" {
			require.ErrorIs(t, err, bridge.ErrDeviceLost)
		} else {
			require.NoError(t, err, h.name)
		}
		if h.name == "Reset" {
			h.recovers()
		}
	}
}

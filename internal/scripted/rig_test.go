package scripted

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var _ mailbox.Port = (*Device)(nil)

// rig is the host mailbox manager over a scripted device.
type rig struct {
	*bridgetest.Env
	s   *Device
	dev bridge.Device
}

// newRig opens a manager over a scripted device that behaves.
func newRig(t *testing.T, sh Shape) *rig {
	t.Helper()
	return newRigIn(bridgetest.NewEnv(t), sh)
}

// newRigIn is newRig for a test with several devices.
func newRigIn(e *bridgetest.Env, sh Shape) *rig {
	e.Helper()
	return newRigOf(e, sh, nil)
}

// newRigWith is newRigIn with a logger.
func newRigWith(e *bridgetest.Env, sh Shape, log *slog.Logger) *rig {
	e.Helper()
	return newRigOf(e, sh, &mailbox.Options{Logger: log})
}

// newRigOf is newRigIn with options.
func newRigOf(e *bridgetest.Env, sh Shape, o *mailbox.Options) *rig {
	e.Helper()
	s, err := New(sh, Hooks{})
	require.NoError(e, err)
	e.Cleanup(func() { // after the device's own Close
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			e.Error(err)
		}
	})
	dev, err := mailbox.Open(e.Ctx(), s, bridge.Info{Address: "script:", Driver: "script"}, o)
	require.NoError(e, err)
	e.Cleanup(func() {
		if err := dev.Close(); err != nil {
			e.Errorf("close device: %v", err)
		}
	})
	return &rig{Env: e, s: s, dev: dev}
}

// recovers requires that a reset makes the device whole again.
func (r *rig) recovers() {
	r.Helper()
	r.s.SetHooks(Hooks{})
	require.NoError(r, r.dev.Reset(r.Ctx()))
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	r.Echo(ch, []byte("after the reset"))
	r.EchoInd(ch, 200_000, 11)
	require.NoError(r, ch.Close())
}

// nth builds a Give hook that alters the n-th message (from 0) that matches.
func nth(n int, match func(m *wire.Slot) bool, alter func(m wire.Slot) []wire.Slot) func(wire.Slot) []wire.Slot {
	seen := 0
	return func(m wire.Slot) []wire.Slot {
		if !match(&m) {
			return []wire.Slot{m}
		}
		if seen++; seen != n+1 {
			return []wire.Slot{m}
		}
		return alter(m)
	}
}

// brief is a context that ends soon: for calls that a silent device leaves
// hanging.
func (r *rig) brief() context.Context {
	ctx, cancel := context.WithTimeout(r.Ctx(), 300*time.Millisecond)
	r.Cleanup(cancel)
	return ctx
}

// requireTyped requires that an error is one that the contract names.
func requireTyped(t require.TestingT, err error) {
	for _, s := range []error{
		bridge.ErrClosed, bridge.ErrTargetTimeout, bridge.ErrSizeMismatch, bridge.ErrKindMismatch,
		bridge.ErrTooLarge, bridge.ErrRange, bridge.ErrProtocol, bridge.ErrDMA, bridge.ErrAborted,
		bridge.ErrWithdrawn, bridge.ErrNotSubscribed, bridge.ErrBusy, bridge.ErrNoProgram, bridge.ErrABI,
		bridge.ErrNoMemory, bridge.ErrInvalid, bridge.ErrNotSupported, bridge.ErrStopped,
		bridge.ErrDeviceLost, bridge.ErrFault, bridge.ErrStalled,
	} {
		if errors.Is(err, s) {
			return
		}
	}
	require.NoError(t, err, "an error without a name")
}

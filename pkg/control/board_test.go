package control_test

import (
	"context"
	"io/fs"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// cards are the open cards by path.
var cards sync.Map

func init() {
	bridge.Register("card", func(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
		dev, err := bridge.Open(ctx, "sim:", o)
		if err != nil {
			return nil, err
		}
		c := bridgetest.NewCard(dev)
		cards.Store(a.Path, c)
		return c, nil
	})
}

// serveCard serves "devices/nic0", which is a card.
func serveCard(t testing.TB) (*control.Client, *bridgetest.Card) {
	srv, c := serve(t, control.Options{})
	require.NoError(t, srv.Open(background(t), "nic0", "card:"+t.Name()))
	card, ok := cards.Load(t.Name())
	require.True(t, ok)
	return c, card.(*bridgetest.Card)
}

func TestRegistersAreReached(t *testing.T) {
	c, card := serveCard(t)
	ctx := background(t)
	_, err := c.Boards.WriteRegister(ctx, &nfcommsv1.WriteRegisterRequest{Name: nic0, Offset: 0x100, Value: math.MaxUint32})
	require.NoError(t, err)
	r, err := c.Boards.ReadRegister(ctx, &nfcommsv1.ReadRegisterRequest{Name: nic0, Offset: 0x100, Width: 4})
	require.NoError(t, err)
	require.EqualValues(t, math.MaxUint32, r.Value)
	for _, req := range []struct {
		is  error
		req *nfcommsv1.ReadRegisterRequest
	}{
		{nfcomms.ErrRange, &nfcommsv1.ReadRegisterRequest{Name: nic0, Offset: 4096}},
		{nfcomms.ErrRange, &nfcommsv1.ReadRegisterRequest{Name: nic0, Bar: 9}},
		{nfcomms.ErrInvalid, &nfcommsv1.ReadRegisterRequest{Name: nic0, Offset: 2}},
		{nfcomms.ErrInvalid, &nfcommsv1.ReadRegisterRequest{Name: nic0, Width: -4}},
		{nfcomms.ErrInvalid, &nfcommsv1.ReadRegisterRequest{Name: "nic0"}},
		{control.ErrNoDevice, &nfcommsv1.ReadRegisterRequest{Name: "devices/nic1"}},
	} {
		_, err := c.Boards.ReadRegister(ctx, req.req)
		require.ErrorIs(t, err, req.is, "%v", req.req)
	}
	card.Refuse(os.ErrPermission)
	_, err = c.Boards.ReadRegister(ctx, &nfcommsv1.ReadRegisterRequest{Name: nic0})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = c.Boards.WriteRegister(ctx, &nfcommsv1.WriteRegisterRequest{Name: nic0})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = c.Boards.WaitInterrupt(ctx, &nfcommsv1.WaitInterruptRequest{Name: nic0})
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestInterruptsAreWaitedFor(t *testing.T) {
	c, card := serveCard(t)
	ctx := background(t)
	card.Interrupt()
	r, err := c.Boards.WaitInterrupt(ctx, &nfcommsv1.WaitInterruptRequest{Name: nic0, After: proto.Uint64(0)})
	require.NoError(t, err, "one that came before the wait")
	require.EqualValues(t, 1, r.Count)
	_, err = c.Boards.WaitInterrupt(ctx, &nfcommsv1.WaitInterruptRequest{Name: nic0, Timeout: durationpb.New(time.Millisecond)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	for _, req := range []*nfcommsv1.WaitInterruptRequest{
		{Name: nic0, Vector: 1}, {Name: nic0, Vector: -1, After: proto.Uint64(0)},
		{Name: nic0, Timeout: durationpb.New(time.Hour)}, {Name: nic0, Timeout: durationpb.New(-1)},
	} {
		_, err := c.Boards.WaitInterrupt(ctx, req)
		require.ErrorIs(t, err, nfcomms.ErrInvalid, "%v", req)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Boards.WaitInterrupt(ctx, &nfcommsv1.WaitInterruptRequest{Name: nic0, After: proto.Uint64(1), Timeout: durationpb.New(time.Minute)})
		done <- err
	}()
	card.Interrupt()
	require.NoError(t, <-done)
}

// TestInterruptsAreSwitched: one that comes while its vector is off is counted when that is on.
func TestInterruptsAreSwitched(t *testing.T) {
	c, card := serveCard(t)
	ctx := background(t)
	set := func(vector int32, on bool) error {
		_, err := c.Boards.SwitchInterrupt(ctx, &nfcommsv1.SwitchInterruptRequest{Name: nic0, Vector: vector, On: on})
		return err
	}
	first := &nfcommsv1.WaitInterruptRequest{Name: nic0, After: proto.Uint64(0), Timeout: durationpb.New(time.Millisecond)}
	require.NoError(t, set(0, false))
	card.Interrupt()
	_, err := c.Boards.WaitInterrupt(ctx, first)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, set(0, true))
	first.Timeout = nil
	_, err = c.Boards.WaitInterrupt(ctx, first)
	require.NoError(t, err)
	require.ErrorIs(t, set(1, false), nfcomms.ErrInvalid)
	card.Refuse(os.ErrPermission)
	require.ErrorIs(t, set(0, false), fs.ErrPermission)
}

// TestNoCardHasNoRegisters: of a device that is none.
func TestNoCardHasNoRegisters(t *testing.T) {
	_, c := serveSim(t, control.Options{})
	ctx := background(t)
	_, err := c.Boards.ReadRegister(ctx, &nfcommsv1.ReadRegisterRequest{Name: nic0})
	require.ErrorIs(t, err, nfcomms.ErrNotSupported)
	require.ErrorContains(t, err, "peek nic0: not supported: the device has no registers")
	_, err = c.Boards.WaitInterrupt(ctx, &nfcommsv1.WaitInterruptRequest{Name: nic0})
	require.ErrorIs(t, err, nfcomms.ErrNotSupported)
}

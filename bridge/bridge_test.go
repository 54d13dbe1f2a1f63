package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCodes walks every status: each has its own reason, sentinel and errno.
func TestCodes(t *testing.T) {
	reasons, errnos := map[string]abi.Status{}, map[error]abi.Status{}
	for s := abi.OK; s < abi.StatusCount; s++ {
		c, ok := bridge.CodeOf(s)
		require.True(t, ok, "status %d", s)
		require.NotEmpty(t, c.Reason, "status %d", s)
		require.NotContains(t, reasons, c.Reason, "status %d", s)
		reasons[c.Reason] = s
		require.Equal(t, c.Err, bridge.Error(s))
		if s == abi.OK {
			require.NoError(t, c.Err)
			continue
		}
		require.Error(t, c.Err, "status %d", s)
		require.NotZero(t, c.Errno, "status %d", s)
		require.NotZero(t, c.GRPC, "status %d", s)
		require.NotContains(t, errnos, error(c.Errno), "status %d", s)
		errnos[c.Errno] = s
	}
	_, ok := bridge.CodeOf(abi.StatusCount)
	require.False(t, ok)
	require.ErrorIs(t, bridge.Error(abi.StatusCount), bridge.ErrProtocol)
}

// TestStatusOf finds each sentinel however it is wrapped, and no other error.
func TestStatusOf(t *testing.T) {
	for s := abi.OK; s < abi.StatusCount; s++ {
		err := bridge.Error(s)
		if s != abi.OK {
			err = &bridge.TransferError{Err: fmt.Errorf("channel 7: %w", err)}
		}
		got, ok := bridge.StatusOf(err)
		require.True(t, ok, "status %d", s)
		require.Equal(t, s, got)
	}
	got, ok := bridge.StatusOf(&bridge.WithdrawnError{Cause: bridge.ErrTargetTimeout})
	require.True(t, ok)
	require.Equal(t, abi.ErrWithdrawn, got)
	for _, err := range []error{os.ErrClosed, context.DeadlineExceeded, bridge.ErrScheme} {
		_, ok := bridge.StatusOf(err)
		require.False(t, ok, "%v", err)
	}
}

// TestStandardErrors: sentinels answer for the errors of the standard library.
func TestStandardErrors(t *testing.T) {
	for _, c := range []struct{ err, is error }{
		{bridge.ErrClosed, net.ErrClosed},
		{bridge.ErrClosed, os.ErrClosed},
		{bridge.ErrTargetTimeout, os.ErrDeadlineExceeded},
		{bridge.ErrTargetTimeout, context.DeadlineExceeded},
		{bridge.ErrNotSupported, errors.ErrUnsupported},
		{&bridge.SizeError{Host: 1, Device: 2}, bridge.ErrSizeMismatch},
		{&bridge.TransferError{Err: bridge.ErrDMA}, bridge.ErrDMA},
		{&bridge.WithdrawnError{Cause: context.Canceled}, context.Canceled},
		{&bridge.WithdrawnError{Cause: context.Canceled}, bridge.ErrWithdrawn},
	} {
		require.ErrorIs(t, c.err, c.is)
	}
	require.NotErrorIs(t, bridge.ErrBusy, os.ErrClosed)
	var timeout interface{ Timeout() bool }
	require.ErrorAs(t, bridge.ErrTargetTimeout, &timeout)
	require.True(t, timeout.Timeout())
	require.ErrorAs(t, error(&bridge.WithdrawnError{Cause: context.Canceled}), &timeout)
	require.False(t, timeout.Timeout())
	require.EqualError(t, &bridge.SizeError{Host: 1, Device: 2}, "sizes differ: host 1 bytes, device 2 bytes")
}

// TestComputingText: an error says what a thread did of which nobody knows the process.
func TestComputingText(t *testing.T) {
	e := bridge.ComputingError{Island: 1, For: 2 * time.Second, Err: bridge.ErrBusy}
	require.EqualError(t, &e, "in use: the thread of island 1 has done nothing for 2s")
	e.Process, e.Program = 7, "sum"
	require.EqualError(t, &e, `in use: program "sum" (process 7) has kept island 1 to itself for 2s`)
}

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		in, scheme, path, option string
	}{
		{"sim:", "sim", "", ""},
		{"sim:?managers=8", "sim", "", "8"},
		{"shm:/run/nfcomms/0.sock", "shm", "/run/nfcomms/0.sock", ""},
		{"dev:0?managers=2", "dev", "0", "2"},
	} {
		a, err := bridge.ParseAddress(c.in)
		require.NoError(t, err, c.in)
		require.Equal(t, c.scheme, a.Scheme)
		require.Equal(t, c.path, a.Path)
		require.Equal(t, c.option, a.Options.Get("managers"))
		require.Equal(t, c.in, a.String())
	}
	for in, is := range map[string]error{
		"":             bridge.ErrScheme,
		"sim":          bridge.ErrScheme,
		":x":           bridge.ErrScheme,
		"sim:?a=1&a=2": bridge.ErrOption,
		"sim:?%zz":     bridge.ErrOption,
	} {
		_, err := bridge.ParseAddress(in)
		require.ErrorIs(t, err, is, in)
	}
}

func TestOnly(t *testing.T) {
	a, err := bridge.ParseAddress("sim:?depth=3")
	require.NoError(t, err)
	require.NoError(t, a.Only("depth", "width"))
	err = a.Only("width", "height")
	require.ErrorIs(t, err, bridge.ErrOption)
	require.ErrorContains(t, err, `option "depth" is not one of width, height`)
}

func TestRegister(t *testing.T) {
	var got bridge.Address
	bridge.Register("test", func(_ context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
		require.NotNil(t, o, "nil options become the defaults")
		got = a
		return nil, bridge.ErrNotSupported
	})
	require.Panics(t, func() { bridge.Register("test", nil) })
	require.Contains(t, bridge.Schemes(), "test")
	_, err := bridge.Open(context.Background(), "test:here?x=1", nil)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	require.Equal(t, "here", got.Path)
	_, err = bridge.Open(context.Background(), "other:", nil)
	require.ErrorIs(t, err, bridge.ErrScheme)
	require.ErrorContains(t, err, `scheme "other" is not one of `)
}

// FuzzParseAddress: what parses prints as something that parses to the same.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"sim:", "sim:?a=1&b=2", "shm:/x", "a:b?c", "?", "x:?%41=%42"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := bridge.ParseAddress(s)
		if err != nil {
			return
		}
		again, err := bridge.ParseAddress(a.String())
		require.NoError(t, err)
		require.Equal(t, a.Scheme, again.Scheme)
		require.Equal(t, a.Path, again.Path)
		require.Equal(t, a.Options, again.Options)
	})
}

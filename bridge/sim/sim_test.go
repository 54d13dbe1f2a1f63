package sim

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openDevice(t *testing.T, options string) bridge.Device {
	t.Helper()
	address := "sim:"
	if options != "" {
		address += "?" + options
	}
	dev, err := bridge.Open(context.Background(), address, nil)
	require.NoError(t, err)
	return dev
}

// TestConformance runs every rule of the contract on the default shape.
func TestConformance(t *testing.T) { bridgetest.Run(t, openDevice) }

func TestBadAddress(t *testing.T) {
	for _, c := range []struct {
		address, says string
		is            error
	}{
		{"sim:?manager=8", `option "manager" is not one of`, bridge.ErrOption},
		{"sim:?managers=8&managers=4", `option "managers" is given twice`, bridge.ErrOption},
		{"sim:?managers=many", "managers=many: invalid argument: want a count like 8", bridge.ErrInvalid},
		{"sim:?emem=1TB", "want a size like 64KiB or 6GiB", bridge.ErrInvalid},
		{"sim:?beat=-1s", "want a duration like 100ms", bridge.ErrInvalid},
		{"sim:?slots=1000", "start firmware: invalid argument", bridge.ErrInvalid},
		{"sim:?islands=3", "start firmware: invalid argument", bridge.ErrInvalid},
		{"sim:path", "sim takes no path", bridge.ErrInvalid},
		{"nowhere:", `scheme "nowhere" is not one of sim`, bridge.ErrScheme},
		{"", "has no scheme", bridge.ErrScheme},
	} {
		_, err := bridge.Open(context.Background(), c.address, nil)
		require.ErrorIs(t, err, c.is, c.address)
		require.ErrorContains(t, err, c.says, c.address)
	}
}

// TestDeviceLog sends a line through the log target to the host's logger.
func TestDeviceLog(t *testing.T) {
	lines := make(chan string, 8)
	logger := slog.New(slog.NewTextHandler(writer(func(p []byte) { lines <- string(p) }), nil))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, err := bridge.Open(ctx, "sim:", &bridge.Options{Logger: logger})
	require.NoError(t, err)
	defer dev.Close()
	log, err := dev.Subscribe(ctx, 2)
	require.NoError(t, err)
	require.NoError(t, log.Send(ctx, []byte("hello from the host")))
	require.Contains(t, <-lines, "hello from the host")
	buf := make([]byte, 56)
	n, err := log.Receive(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "hello from the host", strings.TrimRight(string(buf[:n]), "\x00"))
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

package driver

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/shmwire"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
)

// socketOf returns the socket of the only share that there is.
func socketOf(t *testing.T, f *fakeDaemon) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(t, f.shares, 1)
	return slices.Collect(maps.Keys(f.shares))[0]
}

// TestShareOfAClaim: all parts that a claim has of a device are one share, with their sum as its limits.
// It is made again in the same place after a restart of the device, and is gone with the claim.
func TestShareOfAClaim(t *testing.T) {
	f, dir := newFake(), short(t)
	d, c := newDriver(t, f, dir), claim("one", share("7", 40), share("8", 50))
	_, err := give(t, d, c)
	require.NoError(t, err)
	socket := socketOf(t, f)
	require.Equal(t, shmwire.Limits{Clients: 2, Processes: 10, Channels: 90, Memory: 256 << 20}, f.shares[socket].limits)
	require.Equal(t, "/run/s", f.shares[socket].device)
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o666, info.Mode())
	specification, err := os.ReadFile(d.specification(c.UID))
	require.NoError(t, err)
	require.Contains(t, string(specification), `"hostPath": "`+filepath.Dir(socket)+`"`)
	require.NotContains(t, string(specification), "/run/s", "the container reaches the whole device")

	f.restart()
	d.restore(t.Context())
	require.Equal(t, socket, socketOf(t, f))
	f.restart()
	f.sick("s", true)
	d.restore(t.Context())
	require.Empty(t, f.shares)
	f.sick("s", false)
	d = newDriver(t, f, dir)
	require.NoError(t, d.sweepShares(t.Context()))
	d.restore(t.Context())
	require.Equal(t, socket, socketOf(t, f))

	f.refuses = errors.New("busy")
	require.ErrorContains(t, back(t, d, c.UID), "busy")
	require.Len(t, d.noted.all(), 1)
	f.refuses = nil
	require.NoError(t, back(t, d, c.UID))
	require.Empty(t, f.shares)
	left, err := os.ReadDir(d.shares())
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestNoShare: a device that makes no share is not given. Without limits, as of a card, of a node of a
// fabric, or of a claim that an older driver prepared, containers get what they got.
func TestNoShare(t *testing.T) {
	f, dir := newFake(), short(t)
	d := newDriver(t, f, dir)
	f.refuses = errors.New("no part")
	_, err := give(t, d, claim("one", share("1", 50)))
	require.ErrorContains(t, err, "no part")
	require.Empty(t, specs(t, d))
	require.NoError(t, os.MkdirAll(filepath.Join(d.share(uid("gone"), "s"), "s"), 0o700))
	f.refuses = nil
	require.NoError(t, back(t, d, uid("one")))
	require.NoError(t, d.sweepShares(t.Context()))
	require.NoDirExists(t, d.share(uid("gone"), "s"))

	old := prepared{Devices: []given{{Request: "r", Device: "s", Name: "s", Share: "1", parts: parts{Clients: 1, Channels: 50}}}}
	require.NoError(t, d.noted.set(uid("old"), &old))
	f.places["s"] = "2.0.0"
	card := plugin.Device{Name: "c", Healthy: true, Shares: 2, Info: f.list[0].Info}
	f.set(card)
	shared := share("2", 50)
	shared.Device = "c"
	for name, want := range map[string]string{"old": "NFCOMMS_DEVICE_S=shm:/run/s", "node": "NFCOMMS_DEVICE_S=shm:/run/s", "card": "NFCOMMS_DEVICE_C=dev:0"} {
		c := claim(name, share("2", 50))
		if name == "card" {
			c = claim(name, shared)
		}
		_, err := give(t, d, c)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(specs(t, d)[0], want), "%v", specs(t, d))
		require.NoError(t, back(t, d, c.UID))
		require.Empty(t, f.shares)
	}
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
)

// TestDiscovery: with devices: auto each node is a device, also one that appears later; one that was
// removed stays listed, as a card that fails would be, until a reload.
func TestDiscovery(t *testing.T) {
	dir := t.TempDir()
	node := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(node("nfcomms0"), nil, 0o600))
	require.NoError(t, os.WriteFile(node("nfcomms-other"), nil, 0o600))
	load := func() (*config.Loaded, error) {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags := config.AddFlags(set)
		require.NoError(t, set.Parse([]string{"--devices", "auto"}))
		return loadValid(flags, nil)
	}
	conf, err := load()
	require.NoError(t, err)
	log, level := newLogger(conf.Log, t.Output())
	d, err := newDaemon(conf, log, level)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.control.Shutdown(context.Background())) })
	d.nodes = node("nfcomms[0-9]*")
	listed := func(want ...string) {
		t.Helper()
		var names []string
		for name := range d.conf.Devices {
			names = append(names, name)
			require.Equal(t, "dev:"+node(name), d.conf.Devices[name])
		}
		slices.Sort(names)
		require.Equal(t, want, names)
		for _, name := range names {
			require.Error(t, d.control.Open(t.Context(), name, "sim:"), "%s is taken", name)
		}
	}
	d.openDevices(d.discover())
	listed("nfcomms0")
	require.NoError(t, os.WriteFile(node("nfcomms1"), nil, 0o600))
	d.openDevices(d.discover())
	listed("nfcomms0", "nfcomms1")
	require.Empty(t, d.discover())
	require.NoError(t, os.Remove(node("nfcomms0")))
	d.openDevices(d.discover())
	listed("nfcomms0", "nfcomms1")
	d.reload(load)
	listed("nfcomms1")
	require.NoError(t, d.control.Open(t.Context(), "nfcomms0", "sim:"), "its name is free")
}

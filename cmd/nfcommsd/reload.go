package main

import (
	"maps"
	"slices"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
)

// reload reads the configuration again and takes over what can change in place.
// One that is wrong changes nothing.
func (d *daemon) reload(load func() (*config.Loaded, error)) {
	notify(d.log, systemd.SdNotifyReloading)
	defer func() { notify(d.log, systemd.SdNotifyReady, "STATUS="+statusLine(d.control)) }()
	d.reloads.good.Store(false)
	next, err := load()
	if err != nil {
		d.log.Error("configuration not reloaded, the old one stays in force", "error", err)
		return
	}
	policy, unknown, err := next.Policy()
	if err != nil {
		d.log.Error("configuration not reloaded, the old one stays in force", "error", err)
		return
	}
	if d.tls != nil {
		err = d.tls.Reload()
	}
	later := d.conf.Fixed(next)
	d.level.Set(next.Log.Level)
	d.setPolicy(policy, unknown)
	if next.Auto {
		next.Devices = found(d.nodes)
	}
	d.changeDevices(next.Devices)
	d.conf.TakeLive(next)
	if len(later) > 0 {
		d.log.Warn("some settings change with a restart only", "settings", later)
	}
	d.log.Info("configuration reloaded", "status", statusLine(d.control))
	if err != nil {
		d.log.Error("certificates not reloaded, the old ones stay in use", "error", err)
		return
	}
	d.reloads.succeeded()
}

// changeDevices closes the devices that were removed or have another address, and
// opens the new ones.
func (d *daemon) changeDevices(next map[string]string) {
	fresh := maps.Clone(next)
	for _, name := range slices.Sorted(maps.Keys(d.conf.Devices)) {
		if address, stays := next[name]; stays && address == d.conf.Devices[name] {
			delete(fresh, name)
			continue
		}
		if err := d.control.Remove(name); err != nil {
			d.log.Error("device not closed", "device", name, "error", err)
		}
	}
	d.openDevices(fresh)
}

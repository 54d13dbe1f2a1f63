package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// idleStatus is the time between two status lines without a watchdog.
const idleStatus = 10 * time.Second

// notify notifies systemd of something; without systemd nothing happens.
func notify(log *slog.Logger, lines ...string) {
	if _, err := systemd.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		log.Warn("systemd not notified", "error", err)
	}
}

// mind answers systemd's watchdog, while a restart would not help, and notifies it
// how the devices are, until ctx ends.
func (d *daemon) mind(ctx context.Context) {
	period, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		d.log.Warn("no watchdog", "error", err)
	}
	pause := idleStatus
	if period > 0 {
		pause = period / 3
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		d.report(ctx, period)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// report is one turn of mind.
func (d *daemon) report(ctx context.Context, period time.Duration) {
	lines := []string{"STATUS=" + statusLine(d.control)}
	if period > 0 {
		looking, cancel := context.WithTimeout(ctx, period/3)
		defer cancel()
		if d.liveness.check(looking, d.control) {
			lines = append(lines, systemd.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			d.log.Error("watchdog not answered: no device answers that did before")
		}
	}
	notify(d.log, lines...)
}

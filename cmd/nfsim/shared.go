//go:build cgo

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hosts"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// shared is a device that processes share, as the command line has it.
type shared struct {
	options *options
	mode    fs.FileMode // of the socket
	as      *identity
	device  hosts.Options
}

// parseShared reads the options of --shm.
func parseShared(o *options, log *slog.Logger) (*shared, error) {
	settings, err := parseSettings(o)
	if err != nil {
		return nil, err
	}
	mode, err := strconv.ParseUint(o.shmMode, 8, 9)
	if err != nil {
		return nil, usagef("--shm-mode %q: want permissions in octal digits, such as 0660", o.shmMode)
	}
	if o.hosts < 1 || o.hosts > firmware.HostsMax {
		return nil, usagef("--hosts %d: want 1..%d", o.hosts, firmware.HostsMax)
	}
	userHosts := cmp.Or(o.userHosts, (o.hosts+1)/2)
	if userHosts < 1 || userHosts > o.hosts {
		return nil, usagef("--user-hosts %d: want 1..%d, as there are --hosts", userHosts, o.hosts)
	}
	as, err := identityOf(o.user)
	if err != nil {
		return nil, err
	}
	settings.config.Shared, settings.config.Beat = o.hosts, cmp.Or(settings.config.Beat, sharedBeat)
	return &shared{options: o, mode: fs.FileMode(mode), as: as, device: hosts.Options{
		Device: settings.config, Memory: settings.shmMemory, UserHosts: userHosts, UserMemory: settings.userMemory, Logger: log,
	}}, nil
}

// prepareShared reads the options of --shm and sees to the log lines of the device's programs, until
// lines is closed.
func prepareShared(o *options, log *slog.Logger) (s *shared, lines *deviceLog, err error) {
	if s, err = parseShared(o, log); err != nil {
		return nil, nil, err
	}
	if lines, err = newDeviceLog(log); err != nil {
		return nil, nil, err
	}
	s.device.Device.LogFD = lines.fd()
	return s, lines, nil
}

// sharedBeat is the time between two heartbeats, unless the command line has one. Each is sent to
// all clients and costs a wake-up; clients take a device for lost a second after the last one,
// as of any device, and learn of its end by the socket at once.
const sharedBeat = 200 * time.Millisecond

// share runs a device that processes share, until ctx ends.
func share(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	s, lines, err := prepareShared(o, log)
	if err != nil {
		return err
	}
	defer lines.Close()
	listener, err := listenShared(o.shm, s.mode, s.as)
	if err != nil {
		return err
	}
	defer listener.Close() // unlinks the socket, unless it is systemd's
	return s.serve(ctx, listener, stdout)
}

// serve serves a socket, with the rights that a device needs and no others.
func (s *shared) serve(ctx context.Context, l *net.UnixListener, stdout io.Writer) error {
	if err := s.as.assume(); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		s.device.Logger.Warn("the device runs as root: --user names another user")
	}
	server, status := hosts.New(s.device)
	if status != abi.OK {
		return fmt.Errorf("start device: %w", bridge.Error(status))
	}
	defer server.Close()
	if _, err := systemd.SdNotify(false, systemd.SdNotifyReady); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	if err := confine(s.options.noFilter); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "listening %s\n", s.options.shm)
	return server.Serve(ctx, l)
}

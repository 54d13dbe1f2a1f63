//go:build cgo

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hosts"
	"github.com/nfcomms/nfcomms/firmware"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// share runs a device that processes share, until ctx ends.
func share(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	settings, err := parseSettings(o)
	if err != nil {
		return err
	}
	mode, err := strconv.ParseUint(o.shmMode, 8, 9)
	if err != nil {
		return usagef("--shm-mode %q: want permissions in octal digits, such as 0660", o.shmMode)
	}
	if o.hosts < 1 || o.hosts > firmware.HostsMax {
		return usagef("--hosts %d: want 1..%d", o.hosts, firmware.HostsMax)
	}
	lines, err := newDeviceLog(log)
	if err != nil {
		return err
	}
	defer lines.Close()
	config := settings.config
	config.Shared, config.LogFD = o.hosts, lines.fd()
	listener, err := listenShared(o.shm, fs.FileMode(mode))
	if err != nil {
		return err
	}
	defer listener.Close() // unlinks the socket
	server, status := hosts.New(hosts.Options{Device: config, Memory: settings.shmMemory, Logger: log})
	if status != abi.OK {
		return fmt.Errorf("start device: %w", bridge.Error(status))
	}
	defer server.Close()
	fmt.Fprintf(stdout, "listening %s\n", o.shm)
	return server.Serve(ctx, listener)
}

// listenShared makes the socket. One that is there already and that nobody serves is replaced; what
// belongs to another user is left alone.
func listenShared(path string, mode fs.FileMode) (*net.UnixListener, error) {
	if st, err := os.Lstat(path); err == nil {
		if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
			return nil, fmt.Errorf("%s belongs to another user (uid %d): %w", path, owner.Uid, fs.ErrPermission)
		}
	}
	l, err := listenOn(shmwire.Network, path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hostile"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// server is one device and its attached client.
type server struct {
	options *options
	device  *device.Device
	hostile *hostile.Device // nil: it behaves
	log     *slog.Logger
	report  report
	socket  atomic.Pointer[net.UnixConn] // of the client
}

// serve runs the device until ctx ends, or its client has closed.
func serve(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	lines, err := newDeviceLog(log)
	if err != nil {
		return err
	}
	defer lines.Close()
	s, err := newServer(o, log, lines.fd(), func() { os.Exit(exitDied) })
	if err != nil {
		return err
	}
	defer s.device.Close()
	listener, err := listen(o.socket)
	if err != nil {
		return err
	}
	defer listener.Close() // unlinks the socket
	fmt.Fprintf(stdout, "listening %s\n", o.socket)
	return s.accept(ctx, listener)
}

// newServer makes the device that the command line asks for. It writes its log
// lines to logFD; die is for one that a script kills.
func newServer(o *options, log *slog.Logger, logFD int, die func()) (*server, error) {
	settings, err := parseSettings(o)
	if err != nil {
		return nil, err
	}
	s := &server{options: o, log: log}
	boot := settings.boot(logFD)
	if o.script != "" {
		plan, err := hostile.Parse(o.script)
		if err != nil {
			return nil, usagef("--script: %w", err)
		}
		effects := hostile.Effects{Die: func() { s.leave(); die() }, Vanish: func() { s.device.Vanish() }, FakeRemoval: func() { s.device.FakeRemoval() }}
		s.hostile = hostile.New(plan, o.seed, settings.script(), effects, log)
		boot = s.hostile.Boot
	}
	s.device, err = device.New(device.Options{
		AreaSize: settings.bar, Vectors: o.vectors, Map: !o.noMap, Boot: boot, Logger: log,
		Version: uint32(o.pci), ABI: uint32(o.abi),
	})
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

// listen makes the socket. One that a process left behind is replaced; one that
// somebody listens on, and what is no socket, is not.
func listen(path string) (*net.UnixListener, error) { return listenOn("unix", path) }

// listenOn is listen for a kind of socket. Nobody but its owner may connect, whatever the umask is,
// which it changes for a moment.
func listenOn(network, path string) (*net.UnixListener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	addr := &net.UnixAddr{Name: path, Net: network}
	listener, err := net.ListenUnix(network, addr)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return listener, err
	}
	if st, statErr := os.Lstat(path); statErr != nil || st.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%w: there is something that is no socket", err)
	}
	conn, dialErr := net.DialUnix(network, nil, addr)
	if dialErr == nil {
		conn.Close()
		return nil, fmt.Errorf("%w: another process listens there", err)
	}
	if !errors.Is(dialErr, syscall.ECONNREFUSED) {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return net.ListenUnix(network, addr)
}

// accept serves one client after the other. Nobody listens any more when it returns.
func (s *server) accept(ctx context.Context, listener *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer func() { stop(); listener.Close() }()
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		spoke, err := s.client(ctx, conn)
		if err != nil {
			return err
		}
		if s.options.once && spoke || ctx.Err() != nil {
			return nil
		}
	}
}

// client serves one client and reports what it did. One that never spoke only
// looked whether somebody is here. The error is ours, not the client's.
func (s *server) client(ctx context.Context, socket *net.UnixConn) (spoke bool, err error) {
	s.socket.Store(socket)
	conn := vfiouser.NewConn(socket, s.device, s.log)
	stop, err := s.device.ServeDMA(conn)
	if err != nil {
		return false, errors.Join(err, conn.Close())
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	ended := conn.Serve()
	stop()
	if conn.Stats().Messages == 0 {
		if errors.Is(ended, os.ErrDeadlineExceeded) {
			s.log.Warn("client said nothing, and was let go", "after", conn.Greeting)
		}
		return false, nil
	}
	if ctx.Err() != nil {
		ended = nil // we hung up
	}
	s.log.Info("client has closed", "err", ended)
	s.report.add(s, conn, ended)
	s.device.PowerOff()
	return true, s.report.write(s.options.report)
}

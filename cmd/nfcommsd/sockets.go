package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/listen"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// sockets are the listeners of the daemon.
type sockets struct{ local, remote, web []net.Listener }

func (s *sockets) all() []net.Listener {
	return append(append(append([]net.Listener{}, s.local...), s.remote...), s.web...)
}

func (s *sockets) close() {
	for _, l := range s.all() {
		l.Close()
	}
}

// openSockets takes what systemd handed over, and opens what the configuration
// names: of the control plane, the former replaces the latter. After an error nothing is left open.
func openSockets(conf *config.Loaded) (*sockets, error) {
	given, err := listen.Activated()
	if err != nil {
		return nil, err
	}
	s := &sockets{}
	for _, l := range given[listen.Control] {
		if l.Addr().Network() == "unix" {
			s.local = append(s.local, l)
		} else {
			s.remote = append(s.remote, l)
		}
	}
	if len(given[listen.Control]) == 0 {
		err = s.openControl(conf)
	}
	err = errors.Join(err, s.openMetrics(conf, given[listen.Metrics]))
	err = errors.Join(err, sameMode(conf, "socket.mode", conf.Socket.Mode, given[listen.Control]),
		sameMode(conf, "http.mode", conf.HTTP.Mode, given[listen.Metrics]))
	switch {
	case err != nil:
	case len(s.remote) > 0 && conf.TCP.Files.Certificate == "":
		err = errors.New("systemd handed over a TCP socket for the control plane: it needs tcp.certificate, tcp.key and tcp.client_ca")
	case conf.HTTP.Pprof && conf.HTTP.WebConfig == "" && slices.ContainsFunc(s.web, isOpen):
		err = wrap("http.pprof", errOpenPprof)
	case len(s.local)+len(s.remote) == 0:
		err = errors.New("nowhere to listen: socket.path and tcp.address are both empty")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// sameMode refuses a mode that the configuration names for sockets of systemd that have another.
func sameMode(conf *config.Loaded, key string, want fs.FileMode, given []net.Listener) error {
	for _, l := range given {
		path := l.Addr().String()
		info, err := os.Stat(path)
		if err != nil || info.Mode()&fs.ModeSocket == 0 || info.Mode().Perm() == want || !conf.Given(key) {
			continue // TCP, a name without a file, or nothing to compare
		}
		return conf.Wrong(key, fmt.Errorf("systemd made %s with mode %04o, not %04o: set SocketMode= in its unit", path, info.Mode().Perm(), want))
	}
	return nil
}

// openMetrics takes the sockets of the metrics that systemd handed over, and opens the address that
// the configuration names beside them, unless one of them has that path, or both are TCP. None is
// used if the configuration turns the metrics off.
func (s *sockets) openMetrics(conf *config.Loaded, given []net.Listener) (err error) {
	address := conf.HTTP.Address
	if address == "" && conf.Given("http.address") {
		for _, l := range given {
			l.Close()
		}
		return nil
	}
	s.web = given
	same := func(l net.Listener) bool {
		return "unix:"+l.Addr().String() == address || conf.HTTP.UnixPath() == "" && l.Addr().Network() != "unix"
	}
	if address == "" || slices.ContainsFunc(given, same) {
		return nil
	}
	l, bad := openWeb(conf.HTTP)
	s.web, err = add(s.web, l, nil, wrap("http.address", bad))
	return err
}

// openWeb opens the address of the metrics.
func openWeb(h config.HTTP) (net.Listener, error) {
	path := h.UnixPath()
	if path == "" {
		return net.Listen("tcp", h.Address)
	}
	group, err := listen.GroupID(h.Group)
	if err != nil {
		return nil, err
	}
	return listen.Unix(path, h.Mode, group)
}

// isOpen is true for a listener that other machines may reach.
func isOpen(l net.Listener) bool {
	return l.Addr().Network() != "unix" && !loopback(l.Addr().String())
}

// makeFolder makes the folder of a socket that nobody named: a user's own, or, as
// root, that of the service.
func makeFolder(path string) error {
	switch {
	case path == control.UserSocket():
		return os.MkdirAll(filepath.Dir(path), 0o700)
	case os.Geteuid() == 0 && "unix://"+path == control.DefaultAddress:
		return os.MkdirAll(filepath.Dir(path), 0o755)
	}
	return nil
}

func (s *sockets) openControl(conf *config.Loaded) (err error) {
	if conf.Socket.Path != "" {
		group, bad := listen.GroupID(conf.Socket.Group)
		var l net.Listener
		if bad == nil {
			bad = makeFolder(conf.Socket.Path)
		}
		if bad == nil {
			l, bad = listen.Unix(conf.Socket.Path, conf.Socket.Mode, group)
		}
		s.local, err = add(s.local, l, err, wrap("socket.path", bad))
	}
	if conf.TCP.Address != "" {
		l, bad := net.Listen("tcp", conf.TCP.Address)
		s.remote, err = add(s.remote, l, err, wrap("tcp.address", bad))
	}
	return err
}

// add appends a listener that could be opened, and joins the errors.
func add(to []net.Listener, l net.Listener, err, bad error) ([]net.Listener, error) {
	if bad != nil {
		return to, errors.Join(err, bad)
	}
	return append(to, l), err
}

func wrap(key string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return err
}

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/listen"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// loadValid reads the configuration and checks all that can be checked without
// opening a device or a socket.
func loadValid(flags *config.Flags, environ []string) (*config.Loaded, error) {
	conf, err := flags.Load(environ)
	if err != nil {
		return nil, err
	}
	return conf, errors.Join(
		checkDevices(conf), checkSocket(conf), checkRoles(conf), checkTCP(conf), checkHTTP(conf))
}

func checkDevices(conf *config.Loaded) error {
	var wrong []error
	for name, address := range conf.Devices {
		err := bridge.CheckAddress(address)
		if err != nil {
			err = fmt.Errorf("address %q: %w", address, err)
		}
		if err = errors.Join(control.CheckDevice(name), err); err != nil {
			wrong = append(wrong, conf.Wrong("devices", err))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}

func checkSocket(conf *config.Loaded) error {
	if conf.Socket.Path == "" {
		return nil
	}
	_, err := listen.GroupID(conf.Socket.Group)
	return errors.Join(conf.Wrong("socket.path", listen.CheckPath(conf.Socket.Path)), conf.Wrong("socket.group", err))
}

func checkRoles(conf *config.Loaded) error {
	_, _, err := conf.Policy()
	return err
}

// checkTCP reads the certificates, also without an address: systemd may hand
// over a TCP socket.
func checkTCP(conf *config.Loaded) error {
	files := conf.TCP.Files
	err := conf.Wrong("tcp.address", checkAddress(conf.TCP.Address))
	if files == (access.Files{}) {
		if conf.TCP.Address != "" {
			err = errors.Join(err, conf.Wrong("tcp.address", errors.New("TCP needs tcp.certificate, tcp.key and tcp.client_ca")))
		}
		return err
	}
	for _, f := range []struct{ key, file string }{
		{"tcp.certificate", files.Certificate}, {"tcp.key", files.Key}, {"tcp.client_ca", files.ClientCA},
	} {
		if f.file == "" {
			return errors.Join(err, conf.Wrong(f.key, errors.New("certificate, key and client_ca go together")))
		}
	}
	_, bad := access.NewTLS(files, nil)
	return errors.Join(err, conf.Wrong("tcp.certificate", bad))
}

// errOpenPprof: the profiler shows memory, and anybody could make it stop the world.
var errOpenPprof = errors.New("would be open to others: it needs a loopback address or http.web_config")

func checkHTTP(conf *config.Loaded) error {
	c := conf.HTTP
	err := conf.Wrong("http.address", checkAddress(c.Address))
	local := loopback(c.Address)
	if path := c.UnixPath(); path != "" {
		_, bad := listen.GroupID(c.Group)
		local, err = true, errors.Join(conf.Wrong("http.address", listen.CheckPath(path)), conf.Wrong("http.group", bad))
	}
	if c.WebConfig != "" {
		if bad := web.Validate(c.WebConfig); bad != nil {
			err = errors.Join(err, conf.Wrong("http.web_config", fmt.Errorf("%s: %w", c.WebConfig, bad)))
		}
	}
	if c.Pprof && c.WebConfig == "" && c.Address != "" && !local {
		err = errors.Join(err, conf.Wrong("http.pprof", errOpenPprof))
	}
	return err
}

func checkAddress(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err
}

// loopback is true for an address that only this machine reaches.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

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
		checkDevices(conf.Devices), checkSocket(conf.Socket), checkRoles(conf), checkTCP(conf.TCP), checkHTTP(conf.HTTP))
}

func checkDevices(devices map[string]string) error {
	var wrong []error
	for name, address := range devices {
		a, err := bridge.ParseAddress(address)
		if err == nil && !slices.Contains(bridge.Schemes(), a.Scheme) {
			err = fmt.Errorf("address %q: scheme %q is not one of %s", address, a.Scheme, strings.Join(bridge.Schemes(), ", "))
		}
		if err = errors.Join(control.CheckDevice(name), err); err != nil {
			wrong = append(wrong, fmt.Errorf("devices: %w", err))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}

func checkSocket(s config.Socket) error {
	if s.Path == "" {
		return nil
	}
	_, err := listen.GroupID(s.Group)
	return errors.Join(listen.CheckPath(s.Path), err)
}

func checkRoles(conf *config.Loaded) error {
	_, err := conf.Policy()
	return err
}

// checkTCP reads the certificates, also without an address: systemd may hand
// over a TCP socket.
func checkTCP(c config.TCP) error {
	if c.Files == (access.Files{}) {
		if c.Address != "" {
			return errors.New("tcp.address: TCP needs tcp.certificate, tcp.key and tcp.client_ca")
		}
		return nil
	}
	for key, file := range map[string]string{
		"certificate": c.Files.Certificate, "key": c.Files.Key, "client_ca": c.Files.ClientCA,
	} {
		if file == "" {
			return fmt.Errorf("tcp.%s: certificate, key and client_ca go together", key)
		}
	}
	_, err := access.NewTLS(c.Files, nil)
	return errors.Join(err, checkAddress("tcp.address", c.Address))
}

// errOpenPprof: the profiler shows memory, and anybody could make it stop the world.
var errOpenPprof = errors.New("http.pprof would be open to others: it needs a loopback address or http.web_config")

func checkHTTP(c config.HTTP) error {
	err := checkAddress("http.address", c.Address)
	if c.WebConfig != "" {
		if bad := web.Validate(c.WebConfig); bad != nil {
			err = errors.Join(err, fmt.Errorf("http.web_config %s: %w", c.WebConfig, bad))
		}
	}
	if c.Pprof && c.WebConfig == "" && c.Address != "" && !loopback(c.Address) {
		err = errors.Join(err, errOpenPprof)
	}
	return err
}

func checkAddress(key, address string) error {
	if address == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
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

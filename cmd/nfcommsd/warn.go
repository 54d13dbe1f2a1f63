package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
)

// warnings are what is likely to be a mistake in a configuration that is accepted.
func warnings(conf *config.Loaded) (all []error) {
	warn := func(key string, err error) {
		if err != nil {
			all = append(all, conf.Wrong(key, err))
		}
	}
	if err := tooOpen(conf.File, 0o022, "write"); err != nil {
		all = append(all, err)
	}
	files := conf.TCP.Files
	for _, f := range []struct{ key, path string }{
		{"tcp.certificate", files.Certificate}, {"tcp.key", files.Key}, {"tcp.client_ca", files.ClientCA}, {"tcp.client_crl", files.ClientCRL}, {"http.web_config", conf.HTTP.WebConfig},
	} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			warn(f.key, fmt.Errorf("%q is relative to the folder in which the daemon is started, which is / for systemd", f.path))
		}
	}
	warn("tcp.key", tooOpen(files.Key, 0o027, "read or write"))
	if conf.TCP.Address != "" && !namesCertificates(conf.Roles) {
		warn("tcp.address", errors.New("no role names a certificate (uri:, cn:): each caller is denied everything"))
	}
	for _, err := range webWarnings(conf.HTTP) {
		warn("http.web_config", err)
	}
	return all
}

// tooOpen is about a file whose mode lets others do what only its owner should.
func tooOpen(path string, others fs.FileMode, what string) error {
	info, err := os.Stat(path)
	if path == "" || err != nil || info.Mode().Perm()&others == 0 {
		return nil // one that is missing is found where it is read
	}
	return fmt.Errorf("%s has mode %04o: others than its owner can %s it", path, info.Mode().Perm(), what)
}

// namesCertificates is true if some caller over TLS can hold a role.
func namesCertificates(r config.Roles) bool {
	return slices.ContainsFunc(slices.Concat(r.Viewer, r.Operator, r.Admin), func(subject string) bool {
		return strings.HasPrefix(subject, "uri:") || strings.HasPrefix(subject, "cn:")
	})
}

// webWarnings are about a web configuration that is accepted.
func webWarnings(h config.HTTP) (all []error) {
	var web struct {
		TLS struct {
			Key        string `yaml:"key_file"`
			ClientAuth string `yaml:"client_auth_type"`
		} `yaml:"tls_server_config"`
		Users map[string]string `yaml:"basic_auth_users"`
	}
	text, err := os.ReadFile(h.WebConfig)
	if h.WebConfig == "" || err != nil || yaml.Unmarshal(text, &web) != nil {
		return nil
	}
	if err := tooOpen(h.WebConfig, 0o022, "write"); err != nil {
		all = append(all, err)
	}
	if key := web.TLS.Key; key != "" {
		if !filepath.IsAbs(key) {
			key = filepath.Join(filepath.Dir(h.WebConfig), key) // as the toolkit finds it
		}
		if err := tooOpen(key, 0o027, "read or write"); err != nil {
			all = append(all, err)
		}
	}
	if len(web.Users) == 0 && !strings.HasPrefix(web.TLS.ClientAuth, "Require") && h.UnixPath() == "" && !loopback(h.Address) {
		all = append(all, errors.New("without users and client certificates the metrics are open to everybody who reaches the address"))
	}
	return all
}

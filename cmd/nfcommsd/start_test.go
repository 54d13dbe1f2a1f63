package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/testcert"
)

// certificates writes a server's files below a folder and returns the flags
// that name them.
func certificates(t testing.TB, dir string, server testcert.Pair, clients ...*testcert.Authority) []string {
	files := map[string][]byte{"tls.crt": server.Cert, "tls.key": server.Key, "ca.crt": testcert.Bundle(clients...)}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return []string{
		"--tcp-certificate", filepath.Join(dir, "tls.crt"), "--tcp-key", filepath.Join(dir, "tls.key"),
		"--tcp-client-ca", filepath.Join(dir, "ca.crt"),
	}
}

// TestDoesNotStart: what is wrong with where it should listen is one clear line.
func TestDoesNotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().String()
	ca := testcert.New(t)
	good := certificates(t, t.TempDir(), ca.Issue(t, "a", ""), ca)
	mixed := certificates(t, t.TempDir(), testcert.Pair{Cert: ca.Issue(t, "a", "").Cert, Key: ca.Issue(t, "b", "").Key}, ca)
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, []byte("x: 1\n"), 0o600))
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))

	for _, c := range []struct {
		name string
		code int
		want string
		args []string
	}{
		{"a port in use", exitFailed, "tcp.address: listen tcp " + port + ": bind: address already in use", append(good, "--tcp-address", port)},
		{"the metrics port in use", exitFailed, "http.address: listen tcp " + port + ": bind: address already in use", []string{"--http-address", port}},
		{"a key of another certificate", exitConfig, "private key does not match public key", append(mixed, "--tcp-address", "127.0.0.1:0")},
		{"half of the certificates", exitConfig, "tcp.client_ca: certificate, key and client_ca go together", good[:4]},
		{"TCP without certificates", exitConfig, "TCP needs tcp.certificate, tcp.key and tcp.client_ca", []string{"--tcp-address", "127.0.0.1:0"}},
		{"no port", exitConfig, "http.address: address 127.0.0.1: missing port", []string{"--http-address", "127.0.0.1"}},
		{"a path too long", exitConfig, fmt.Sprintf("socket path too long: %d bytes, at most 107", len(long)), []string{"--socket-path", long}},
		{"a relative path", exitConfig, "not absolute", []string{"--socket-path", "s"}},
		{"a file in the way", exitFailed, "not a socket of this daemon: it is no socket", []string{"--socket-path", file}},
		{"an unknown group", exitConfig, "socket group", []string{"--socket-group", "no-such-group-at-all"}},
		{"an unknown key", exitConfig, file + `:1: unknown key "x"`, []string{"--config", file}},
		{"an unknown flag", exitConfig, "unknown flag: --devcies", []string{"--devcies", "a=sim:"}},
		{"an argument", exitConfig, "unknown command", []string{"start"}},
		{"an unknown scheme", exitConfig, `scheme "pci" is not one of`, []string{"--devices", "a=pci:0"}},
		{"an option that sim has not", exitConfig, `address "sim:?bogus=1": option "bogus" is not one of`, []string{"--devices", "a=sim:?bogus=1"}},
		{"no number of a device", exitConfig, `address "dev:notanumber": path "notanumber"`, []string{"--devices", "a=dev:notanumber"}},
		{"no number of a port", exitConfig, "http.address: address 99999: invalid port", []string{"--http-address", "127.0.0.1:99999"}},
		{"no name of a port", exitConfig, "tcp.address", append(good, "--tcp-address", "127.0.0.1:no-such-port")},
		{"an address without a scheme", exitConfig, "has no scheme", []string{"--devices", "a=0"}},
		{"a device name", exitConfig, `device name "A/b"`, []string{"--devices", "A/b=sim:"}},
		{"a subject without a number", exitConfig, "roles.admin: subject", []string{"--roles-admin", "uid:x"}},
		{"a missing web configuration", exitConfig, "http.web_config", []string{"--http-web-config", file + ".gone"}},
		{"an open profiler", exitConfig, "http.pprof: would be open to others", []string{"--http-address", "0.0.0.0:0", "--http-pprof"}},
		{"nowhere to listen", exitFailed, "nowhere to listen", []string{"--socket-path", ""}},
	} {
		code, log := fails(t, c.args...)
		require.Equal(t, c.code, code, "%s: %s", c.name, log)
		require.Contains(t, log, c.want, c.name)
		require.Contains(t, log, "nfcommsd: ", c.name)
	}
}

// TestUnknownNames: a role whose holder this machine does not know, or not yet, is
// said and keeps nobody else out.
func TestUnknownNames(t *testing.T) {
	roles := []string{"--roles-admin", fmt.Sprintf("group:no-such-group-at-all,uid:%d", os.Geteuid()), "--roles-viewer", "user:no-such-user-at-all"}
	p := newProcess(t, append(roles, "--check")...)
	p.run()
	require.Zero(t, p.end())
	require.Contains(t, p.log.String(), `warning: flag --roles-viewer: roles.viewer: subject "user:no-such-user-at-all": unknown name`)
	require.Contains(t, p.log.String(), "the configuration is good\n")

	p = start(t, roles...)
	p.logged("no-such-group-at-all")
	p.logged("no-such-user-at-all")
	require.Equal(t, []string{"sim0 sim:"}, names(t, p.client()))
	p.stop()
}

// TestAnotherDaemon: two cannot have one socket, and the first still serves.
func TestAnotherDaemon(t *testing.T) {
	p := start(t)
	code, log := fails(t, "--socket-path", p.socket)
	require.Equal(t, exitFailed, code)
	require.Contains(t, log, "another process is listening")
	require.NotZero(t, healthOf(t, p.client(), ""))
	p.stop()
	_, err := os.Lstat(p.socket)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestCheckAndPrint: neither opens anything.
func TestCheckAndPrint(t *testing.T) {
	p := newProcess(t, "--check")
	p.run()
	require.Zero(t, p.end())
	require.Equal(t, "the configuration is good\n", p.log.String())

	p = newProcess(t, "--print-config", "--limits-streams", "77")
	p.run()
	require.Zero(t, p.end())
	require.Contains(t, p.log.String(), "(flag --limits-streams)\n  streams: 77\n")
	text := p.log.String()
	p = newProcess(t, "--check", "--config", p.file("c.yaml", text))
	p.run()
	require.Zero(t, p.end(), "%s", p.log.String())

	code, log := fails(t, "--check", "--log-level", "loud")
	require.Equal(t, exitConfig, code)
	require.Contains(t, log, `flag --log-level: log.level: "loud" is not debug, info, warn or error`)
	code, _ = fails(t, "--check", "--print-config")
	require.Equal(t, exitConfig, code)

	p = newProcess(t, "--version")
	p.run()
	require.Zero(t, p.end())
	require.Contains(t, p.log.String(), "nfcommsd version ")
}

// TestCheckSaysWhere: what is wrong with a configuration that can be read is said
// with file and line too, all at once.
func TestCheckSaysWhere(t *testing.T) {
	p := newProcess(t)
	file := p.file("c.yaml", "devices:\n  a: \"pci:0\"\nroles:\n  viewer: [user:no-such-user-at-all, uid:1]\n  admin: [gid:x]\n"+
		"socket:\n  group: no-such-group-at-all\ntcp:\n  address: \"127.0.0.1:0\"\nhttp:\n  address: nowhere\n")
	p.args = []string{"--check", "--config", file}
	p.run()
	require.Equal(t, exitConfig, p.end())
	for _, want := range []string{
		":1: devices: address \"pci:0\"", ":5: roles.admin: subject \"gid:x\"",
		":7: socket.group: ", ":9: tcp.address: TCP needs", ":11: http.address: ",
	} {
		require.Contains(t, p.log.String(), "c.yaml"+want)
	}
}

// TestSampleConfiguration: the file that is shipped is good, and holds every
// setting there is.
func TestSampleConfiguration(t *testing.T) {
	const sample = "../../deploy/config/nfcommsd.yaml"
	text, err := os.ReadFile(sample)
	require.NoError(t, err)
	p := newProcess(t, "--print-config")
	p.run()
	require.Zero(t, p.end())
	for _, line := range strings.Split(p.log.String(), "\n") {
		key, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.Contains(line, "#") || strings.HasPrefix(key, `"`) {
			continue
		}
		require.Contains(t, string(text), key+":", "a setting that the sample lacks")
	}
	var on []string // the sample with everything in it switched on
	for _, line := range strings.Split(string(text), "\n") {
		if setting, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "#"); ok && strings.HasPrefix(setting, " ") {
			continue // prose
		} else if ok {
			line = strings.Replace(line, "#", "", 1)
		}
		on = append(on, line)
	}
	for _, c := range []string{string(text), strings.Join(on, "\n")} {
		c = regexp.MustCompile(`group: nfcomms[a-z-]*`).ReplaceAllString(c, "group: root")
		p := newProcess(t)
		p.args = []string{"--check", "--config", p.file("c.yaml", c)}
		p.run()
		code := p.end()
		if strings.Contains(c, "\n  certificate:") { // its files are not on this machine
			require.Equal(t, exitConfig, code)
			require.Contains(t, p.log.String(), "no such file or directory")
			require.NotContains(t, p.log.String(), "unknown key")
			continue
		}
		require.Zero(t, code, "%s", p.log.String())
	}
}

// TestFirstLine: the log begins with the version, the file and the sockets.
func TestFirstLine(t *testing.T) {
	web, tcp, ca := freePort(t), freePort(t), testcert.New(t)
	p := newProcess(t, append(certificates(t, t.TempDir(), ca.Issue(t, "server", ""), ca), "--tcp-address", tcp, "--http-address", web)...)
	file := p.file("c.yaml", "log: {format: text}\n")
	p.args = append(p.args, "--config", file, "--log-level", "info")
	p.run()
	p.await("READY=1")
	first, _, _ := strings.Cut(p.log.String(), "\n")
	require.Regexp(t, `msg=starting version=\S+ commit=\S+ file=`+regexp.QuoteMeta(file)+` unix=`+regexp.QuoteMeta(p.socket)+` tls=`+tcp+` http=`+web, first)
	p.stop()
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/testcert"
)

// TestCheckWarns: each likely mistake in a configuration that is accepted has a line of its own.
func TestCheckWarns(t *testing.T) {
	ca := testcert.New(t)
	p := newProcess(t)
	dir := filepath.Dir(p.file("web.yaml", "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"))
	t.Chdir(dir)
	certificates(t, dir, ca.Issue(t, "server", ""), ca)
	config := p.file("c.yaml", "tcp:\n  address: \"127.0.0.1:0\"\n  certificate: tls.crt\n  key: "+dir+"/tls.key\n  client_ca: "+dir+"/ca.crt\n"+
		"http:\n  address: \"0.0.0.0:0\"\n  web_config: "+dir+"/web.yaml\n")
	check := func(want ...string) {
		t.Helper()
		var stdout, stderr strings.Builder
		require.Equal(t, exitOK, run([]string{"--check", "--config", config}, nil, nil, &stdout, &stderr), "%s", &stderr)
		require.Equal(t, "the configuration is good\n", stdout.String())
		for _, w := range want {
			require.Contains(t, stderr.String(), "nfcommsd: warning: "+w+"\n")
		}
		require.Equal(t, len(want), strings.Count(stderr.String(), "\n"), "%s", &stderr)
	}
	relative := config + `:3: tcp.certificate: "tls.crt" is relative to the folder in which the daemon is started, which is / for systemd`
	nobody := config + ":2: tcp.address: no role names a certificate (uri:, cn:): each caller is denied everything"
	open := config + ":8: http.web_config: without users and client certificates the metrics are open to everybody who reaches the address"
	check(relative, nobody, open)

	key := filepath.Join(dir, "tls.key")
	for _, file := range []string{key, config, filepath.Join(dir, "web.yaml")} {
		require.NoError(t, os.Chmod(file, 0o666))
	}
	check(relative, nobody, open, config+" has mode 0666: others than its owner can write it",
		config+":4: tcp.key: "+key+" has mode 0666: others than its owner can read or write it",
		config+":8: http.web_config: "+key+" has mode 0666: others than its owner can read or write it",
		config+":8: http.web_config: "+dir+"/web.yaml has mode 0666: others than its owner can write it")
}

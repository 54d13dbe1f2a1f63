package release

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// signer returns the environment of a gpg with one secret key, and the fingerprint of the key.
func signer(t *testing.T) (env []string, key string) {
	t.Helper()
	home := t.TempDir()
	require.NoError(t, os.Chmod(home, 0o700))
	env = []string{"GNUPGHOME=" + home}
	t.Cleanup(func() {
		stop := exec.Command("gpgconf", "--kill", "gpg-agent")
		stop.Env = append(os.Environ(), env...)
		_ = stop.Run()
	})
	output(t, home, env, "gpg", "--batch", "--passphrase", "", "--quick-gen-key", "packages@example.org", "ed25519", "sign", "1d")
	list := output(t, home, env, "gpg", "--batch", "--list-secret-keys", "--with-colons")
	found := regexp.MustCompile(`(?m)^fpr:+([0-9A-F]+):$`).FindStringSubmatch(list)
	require.Len(t, found, 2, "%s", list)
	return env, found[1]
}

// repository makes a signed repository of one package, and returns its folder.
func repository(t *testing.T) string {
	t.Helper()
	script, err := filepath.Abs("../../deploy/debian/repository.sh")
	require.NoError(t, err)
	dir, tree := t.TempDir(), t.TempDir()
	write(t, tree, "DEBIAN/control", "Package: one\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@example.org>\nDescription: one\n")
	require.NoError(t, os.Chmod(tree, 0o755))
	output(t, dir, nil, "dpkg-deb", "--root-owner-group", "--build", tree, filepath.Join(dir, "one_1.0_all.deb"))
	env, key := signer(t)
	output(t, dir, append(env, "SOURCE_DATE_EPOCH=1767225600"), script, dir, key)
	return dir
}

// install has an apt with nothing else configured read the repository and fetch its package.
func install(t *testing.T, url, key string) (string, error) {
	t.Helper()
	root := t.TempDir()
	write(t, root, "etc/apt/sources.list", "deb [signed-by="+key+"] "+url+" ./\n")
	write(t, root, "var/lib/dpkg/status", "")
	for _, folder := range []string{"var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "etc/apt/apt.conf.d", "etc/apt/preferences.d"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "apt-get", append([]string{"-o", "Dir=" + root, "-o", "Dir::State::status=" + root + "/var/lib/dpkg/status",
			"-o", "APT::Sandbox::User=root", "-o", "Acquire::http::Proxy=DIRECT", "-o", "Acquire::Retries=0", "-o", "APT::Update::Error-Mode=any"}, args...)...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "LC_ALL=C", "no_proxy=127.0.0.1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("update"); err != nil {
		return out, err
	}
	return run("download", "one")
}

// TestChangedRepositoryIsRefused: apt installs from a signed repository on the web, and not after
// one byte of it changed.
func TestChangedRepositoryIsRefused(t *testing.T) {
	dir := repository(t)
	web := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer web.Close()
	key := filepath.Join(dir, "nfcomms.gpg")
	out, err := install(t, web.URL, key)
	require.NoError(t, err, "%s", out)
	for _, c := range []struct{ file, from, to, want string }{
		{"Packages.gz", "", "", "Hash Sum mismatch"},
		{"InRelease", "NFComms", "NFCommz", "invalid: BADSIG"},
		{"one_1.0_all.deb", "debian-binary", "debian-binarz", "Hash Sum mismatch"},
	} {
		path := filepath.Join(dir, c.file)
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		bad := bytes.Replace(good, []byte(c.from), []byte(c.to), 1)
		if c.from == "" {
			bad = bytes.Clone(good)
			bad[len(bad)-1] ^= 1
		}
		require.Len(t, bad, len(good))
		require.NotEqual(t, good, bad)
		require.NoError(t, os.WriteFile(path, bad, 0o644))
		out, err := install(t, web.URL, key)
		require.Error(t, err, "%s changed: %s", c.file, out)
		require.Contains(t, out, c.want, c.file)
		require.NoError(t, os.WriteFile(path, good, 0o644))
	}
}

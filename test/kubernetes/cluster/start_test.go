package cluster

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// watchdog bounds what the test waits for.
const watchdog = 3 * time.Minute

// token is an administrator's.
const token = "administrator"

// eventually waits until check returns nothing that is missing.
func eventually(t *testing.T, check func() (missing string)) {
	t.Helper()
	missing := ""
	for begin := time.Now(); time.Since(begin) < watchdog; time.Sleep(100 * time.Millisecond) {
		if missing = check(); missing == "" {
			return
		}
	}
	t.Fatal("not in time: ", missing)
}

// port returns one that is free.
func port(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, number, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return number
}

// program runs a program until it is killed, or the test ends. Its log is shown if the test fails.
func program(t *testing.T, path string, args ...string) (kill func()) {
	var log bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &log, &log, t.TempDir()
	require.NoError(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be
	})
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Args[:2], log.Bytes()[max(0, log.Len()-8000):])
		}
	})
	return kill
}

// files are those that the programs read.
type files struct {
	testing.TB
	dir string
}

func (f files) write(name, text string) string {
	path := filepath.Join(f.dir, name)
	require.NoError(f, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// keys writes a pair of keys for tokens.
func (f files) keys() (private, public string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(f, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(f, err)
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return f.write("private", block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))), f.write("public", block("PUBLIC KEY", der))
}

// access writes how to reach the API server.
func (f files) access(host, token string) string {
	return f.write("access", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: %q}}]}`, host, token))
}

// start runs etcd, API server, scheduler and controllers, and returns how to reach them.
func start(t *testing.T) (*rest.Config, *kubernetes.Clientset) {
	f := files{t, t.TempDir()}
	binary := filepath.Join(f.dir, "controlplane")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../controlplane").CombinedOutput()
	require.NoError(t, err, "%s", out)
	private, public := f.keys()
	etcd, secure := "http://127.0.0.1:"+port(t), port(t)
	program(t, "etcd", "--data-dir="+filepath.Join(f.dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls=http://127.0.0.1:0")
	program(t, binary, "kube-apiserver", "--etcd-servers="+etcd, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+public, "--service-account-signing-key-file="+private,
		"--token-auth-file="+f.write("tokens", token+`,admin,1,"system:masters"`), "--authorization-mode=RBAC", "--secure-port="+secure,
		"--bind-address=127.0.0.1", "--cert-dir="+filepath.Join(f.dir, "certs"), "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount")
	config := &rest.Config{Host: "https://127.0.0.1:" + secure, BearerToken: token, QPS: 1000, Burst: 1000, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	eventually(t, func() string { // those that follow give up after 10 s
		if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error(); err != nil {
			return err.Error()
		}
		return ""
	})
	access := f.access(config.Host, token)
	common := []string{"--kubeconfig=" + access, "--authentication-kubeconfig=" + access, "--authorization-kubeconfig=" + access, "--leader-elect=false", "--secure-port=0"}
	program(t, binary, append([]string{"kube-scheduler"}, common...)...)
	// Nodes have no kubelet that says that they live.
	program(t, binary, append([]string{"kube-controller-manager", "--controllers=*,-node-lifecycle-controller", "--service-account-private-key-file=" + private}, common...)...)
	return config, client
}

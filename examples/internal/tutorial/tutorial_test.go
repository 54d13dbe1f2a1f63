// Package tutorial holds the pages of docs/tutorial to what their listings do.
package tutorial

import (
	"bufio"
	"bytes"
	"go/format"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// address is where the service of the last page serves.
const address = "127.0.0.1:7461"

// listing returns the first listing of a page in a language.
func listing(t *testing.T, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs/tutorial", page))
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 130, "a page each")
	m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```\n").FindSubmatch(text)
	require.NotNil(t, m, "%s has no %s listing", page, language)
	return string(m[1])
}

// built builds the Go listing of a page, which must be formatted, and returns the
// program.
func built(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	said, err := exec.Command("gofmt", "-l", source).CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(said))
	build := exec.Command("go", "build", "-o", binary, source)
	build.Dir = "../../.."
	said, err = build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return binary
}

// folder is where device/upper.c of the third page lies.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "device"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "device", "upper.c"), []byte(listing(t, "3-program.md", "c")), 0o600))
	return dir
}

// TestHello: the first page shows examples/hello, whose own test runs it.
func TestHello(t *testing.T) {
	text, err := os.ReadFile("../../hello/main.go")
	require.NoError(t, err)
	require.Equal(t, string(text), listing(t, "1-hello.md", "go"))
}

// TestPrograms: what the second and the third page print is what they say.
func TestPrograms(t *testing.T) {
	for _, page := range []string{"2-bulk.md", "3-program.md"} {
		program := exec.Command(built(t, listing(t, page, "go")))
		program.Dir = folder(t)
		out, err := program.CombinedOutput()
		require.NoError(t, err, "%s: %s", page, out)
		require.Equal(t, listing(t, page, "text"), string(out), page)
	}
}

// where is how a page says where lines belong in the program before them.
var where = regexp.MustCompile("Import ([^:]*?),\\s+and\\s+put\\s+this\\s+before\\s+the\\s+line\\s+that\\s+begins\\s+with\\s+`([^`]+)`:\n\n$")

// TestWithdrawn: the first page's lines about a context, put into its program where
// the page says.
func TestWithdrawn(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tutorial/1-hello.md")
	require.NoError(t, err)
	parts := strings.Split(string(page), "```") // text, and listings between
	require.Len(t, parts, 9)
	program, lines, want := strings.TrimPrefix(parts[1], "go\n"), strings.TrimPrefix(parts[5], "go\n"), strings.TrimPrefix(parts[7], "text\n")
	says := where.FindStringSubmatch(parts[4])
	require.NotNil(t, says, parts[4])
	for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(says[1], -1) {
		program = strings.Replace(program, "import (\n", "import (\n\t\""+name[1]+"\"\n", 1)
	}
	require.Equal(t, 1, strings.Count(program, "\t"+says[2]))
	program = strings.Replace(program, "\t"+says[2], lines+"\t"+says[2], 1)
	formatted, err := format.Source([]byte(program))
	require.NoError(t, err)
	out, err := exec.Command(built(t, string(formatted))).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, want, string(out))
}

// get asks the service for a page, or uploads text.
func get(t *testing.T, url, text string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	r, err := client.Get(url)
	if text != "" {
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		r, err = client.Post(url, "text/plain", strings.NewReader(text))
	}
	require.NoError(t, err)
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(all)
}

// TestService runs the service of the last page and asks it as the page does, beside a client that sent
// half a body and keeps silent. Ctrl-C and the signal of a service manager end it.
func TestService(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	require.NoError(t, l.Close())
	program := built(t, strings.ReplaceAll(listing(t, "4-service.md", "go"), address, at))
	for _, end := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		service := exec.Command(program)
		service.Dir = folder(t)
		out, err := service.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, service.Start())
		lines := bufio.NewReader(out)
		said, err := lines.ReadString('\n')
		require.NoError(t, err)
		half, err := net.Dial("tcp", at)
		require.NoError(t, err)
		_, err = io.WriteString(half, "POST /upper HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		require.NoError(t, err)
		_, err = bufio.NewReader(half).ReadString('\n') // the service reads the body now
		require.NoError(t, err)
		require.Equal(t, "HELLO", get(t, "http://"+at+"/upper", "hello"))
		require.Contains(t, get(t, "http://"+at+"/metrics", ""), "nfcomms_pool_exchanges_total")
		long, err := http.Post("http://"+at+"/upper", "text/plain", strings.NewReader(strings.Repeat("x", 57)))
		require.NoError(t, err)
		require.NoError(t, long.Body.Close())
		require.Equal(t, http.StatusRequestEntityTooLarge, long.StatusCode)
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, half.Close())
		require.NoError(t, service.Process.Signal(end))
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.NoError(t, service.Wait())
		require.Equal(t, listing(t, "4-service.md", "text"), said+string(rest))
	}
}

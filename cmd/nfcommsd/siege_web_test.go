package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/testcert"
)

// resets open streams and reset them, over HTTP/2 with TLS and without a certificate, in 16
// connections. Where the server does not take HTTP/2 they ask for the same page by HTTP/1.1.
func resets(address string) {
	parallel(16, func() {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			return
		}
		defer conn.Close()
		if conn.ConnectionState().NegotiatedProtocol != "h2" {
			pipeline(conn)
			return
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		openAndReset(conn, ":method", "GET", ":path", "/metrics")
	})
}

// streams open calls of the control plane and reset them, in 16 connections.
func streams(address string) {
	parallel(16, func() {
		conn, err := net.Dial("unix", path(address))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			return
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		openAndReset(conn, ":method", "POST", ":path", "/nfcomms.v1.DeviceService/WatchDevices", "content-type", "application/grpc", "te", "trailers")
	})
}

// openAndReset opens streams with these fields, and resets each when 200 more are open, until the
// server has enough.
func openAndReset(conn net.Conn, fields ...string) {
	out := bufio.NewWriter(conn)
	_, _ = out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(out, nil)
	_ = f.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for id := uint32(1); id < 1<<31; id += 2 {
		block.Reset()
		for i, fields := 0, append([]string{":scheme", "https", ":authority", "x"}, fields...); i < len(fields); i += 2 {
			_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		if id > 400 {
			_ = f.WriteRSTStream(id-400, http2.ErrCodeCancel)
		}
		if out.Flush() != nil {
			return
		}
	}
}

// readers ask for pages in 100 connections, each as fast as it can, and read them.
func readers(address string) {
	parallel(100, func() {
		conn, err := dialWeb(address)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			return
		}
		defer conn.Close()
		pipeline(conn)
	})
}

// pipeline sends request upon request, and reads the answers.
func pipeline(conn net.Conn) {
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	many := []byte(strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 64))
	for {
		if _, err := conn.Write(many); err != nil {
			return
		}
	}
}

// again has 600 idle connections, each of which begins anew when it is closed.
func again(address string) {
	parallel(600, func() {
		conn, err := dialWeb(address)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1))
	})
}

// parallel runs something again and again, n times at once.
func parallel(n int, run func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				run()
			}
		})
	}
	all.Wait()
}

// Bounds of scrapes under attack.
const (
	// mostScrape is how long a scrape may take.
	mostScrape = time.Second
)

// TestSoakScrapes attacks the web listener, plain and with TLS, of a daemon that was just started:
// every scrape is answered in time, and memory stays bounded.
func TestSoakScrapes(t *testing.T) {
	for name, c := range map[string]struct {
		tls     bool
		attacks []string
	}{
		"plain":  {false, []string{"visitors", "again", "readers"}},
		"resets": {true, []string{"resets"}},
	} {
		t.Run(name, func(t *testing.T) { soakScrapes(t, freePort(t), c.tls, c.attacks) })
	}
	t.Run("unix", func(t *testing.T) {
		soakScrapes(t, "unix:"+filepath.Join(socketFolder(t), "m"), false, []string{"visitors", "again", "readers"})
	})
}

func soakScrapes(t *testing.T, web string, secure bool, attacks []string) {
	p := newProcess(t, "--http-address", web, "--http-mode", "0666", "--log-level", "error", "--devices", "sim0=sim:?beat=2s", "--health-timeout", "20s")
	config := &tls.Config{InsecureSkipVerify: true}
	dial := func() (net.Conn, error) { return dialWeb(web) }
	if secure {
		ca := testcert.New(t)
		certificates(t, p.dir, ca.Issue(t, "server", ""), ca)
		p.args = append(p.args, "--http-web-config", p.file("web.yaml", fmt.Sprintf("tls_server_config: {cert_file: %s/tls.crt, key_file: %s/tls.key}\n", p.dir, p.dir)))
		dial = func() (net.Conn, error) { return tls.Dial("tcp", web, config) }
	}
	p.env = append(p.env, "GOMEMLIMIT=384MiB")
	p.run()
	p.await("READY=1")
	stop := attackers(t, web, attacks...)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() },
	}}
	var longest time.Duration
	n, failed, late, most := 0, 0, 0, 0
	for end := time.Now().Add(max(*soakFor, shortSoak)); time.Now().Before(end); n++ {
		begin := time.Now()
		if err := page(client, "http://daemon/metrics"); err != nil {
			failed++
		}
		took := time.Since(begin)
		longest = max(longest, took)
		if took > mostScrape {
			late++
		}
		most = max(most, p.resident())
		time.Sleep(100 * time.Millisecond) // a scraper's turn
	}
	stop()
	t.Logf("%d scrapes, %d failed, %d late, the longest %v; %.1f MiB at most", n, failed, late, longest.Round(time.Millisecond), float64(most)/(1<<20))
	require.Less(t, most, memoryFactor*mostMemory)
	if *soakFor > 0 {
		require.Zero(t, failed)
		require.Zero(t, late)
	}
	p.stop()
}

// dialWeb connects to host:port or unix:PATH.
func dialWeb(address string) (net.Conn, error) {
	if file, ok := strings.CutPrefix(address, "unix:"); ok {
		return fdpass.Dial(context.Background(), "unix", file)
	}
	return net.DialTimeout("tcp", address, patience)
}

// page asks for one page.
func page(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", resp.Status)
	}
	return err
}

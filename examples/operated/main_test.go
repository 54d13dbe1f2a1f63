package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a watchdog, not a measure.
const patience = time.Minute

// flags are those of a test: nothing outside a folder of its own.
func flags(t *testing.T) options {
	dir, err := os.MkdirTemp("", "service") // short: a socket's path is limited
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return options{device: "sim:", socket: filepath.Join(dir, "s"), http: "127.0.0.1:0", senders: 2, size: 100_000}
}

// start runs the service and returns what it printed.
func start(t *testing.T, o options) (control, metrics string, stop func() error) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, o)
		w.Close() // the reader must not wait for lines that do not come
	}()
	lines := bufio.NewScanner(r)
	for _, to := range []*string{&control, &metrics} {
		lines.Scan()
		_, *to, _ = strings.Cut(lines.Text(), ": ")
	}
	os.Stdout = stdout
	return control, metrics, func() error {
		defer r.Close()
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return fmt.Errorf("still there after %v", patience)
		}
	}
}

var payload = regexp.MustCompile(`(?m)^nfcomms_payload_bytes_total\{device="sim0",direction="h2d",path="indirect"\} (\S+)$`)

// sent returns the bytes that the service says it sent.
func sent(t *testing.T, url string) float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	m := payload.FindSubmatch(page)
	require.NotNil(t, m, "%s", page)
	v, err := strconv.ParseFloat(string(m[1]), 64)
	require.NoError(t, err)
	return v
}

// TestService: it sends, shows what it sends, can be operated, and ends when it
// is told.
func TestService(t *testing.T) {
	o := flags(t)
	address, url, stop := start(t, o)
	deadline := time.Now().Add(patience)
	for first := sent(t, url); sent(t, url) < first+10*100_000; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "it does not send")
	}
	c, err := control.Dial(address)
	require.NoError(t, err)
	dev, err := c.Devices.GetDevice(t.Context(), &nfcommsv1.GetDeviceRequest{Name: "devices/sim0"})
	require.NoError(t, err)
	require.Equal(t, nfcommsv1.Device_STATE_READY, dev.GetDevice().GetState())
	require.NoError(t, c.Close())
	require.NoError(t, stop())
	require.NoFileExists(t, o.socket)
}

// TestReset: an operator who resets the device ends the service with the reason.
func TestReset(t *testing.T) {
	address, url, stop := start(t, flags(t))
	sent(t, url)
	c, err := control.Dial(address)
	require.NoError(t, err)
	_, err = c.Devices.ResetDevice(t.Context(), &nfcommsv1.ResetDeviceRequest{Name: "devices/sim0"})
	if !errors.Is(err, control.ErrShutdown) { // the service may be on its way out before the answer
		require.NoError(t, err)
	}
	require.NoError(t, c.Close())
	deadline := time.Now().Add(patience)
	for {
		conn, err := net.Dial("unix", strings.TrimPrefix(address, "unix://"))
		if err != nil {
			break
		}
		conn.Close()
		require.True(t, time.Now().Before(deadline), "it goes on")
	}
	require.ErrorContains(t, stop(), "device lost")
}

// TestBadFlags: what cannot work ends the service at once, with one reason.
func TestBadFlags(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for want, change := range map[string]func(*options){
		"unknown address scheme": func(o *options) { o.device = "none:" },
		"address already in use": func(o *options) { o.http = taken.Addr().String() },
		"invalid argument":       func(o *options) { o.socket += strings.Repeat("x", 200) },
		"4294967295 targets":     func(o *options) { o.senders = 1<<32 - 1 },
	} {
		o := flags(t)
		change(&o)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		require.ErrorContains(t, run(ctx, o), want)
		cancel()
	}
}

// TestServiceIsShort holds the example to its length.
func TestServiceIsShort(t *testing.T) {
	text, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Less(t, bytes.Count(text, []byte("\n")), 120)
}

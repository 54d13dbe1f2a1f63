package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// shows waits until /metrics has a line.
func shows(t *testing.T, address, line string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.Eventually(t, func() bool { // no require in here: it would end the asking
		resp, err := client.Get("http://" + address + "/metrics")
		if err != nil {
			return false // too many connections in a second, perhaps
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(body), "\n"+line+"\n")
	}, patience, 20*time.Millisecond, line)
}

// TestDrainIsShown: the metrics distinguish a drained device from one that serves.
func TestDrainIsShown(t *testing.T) {
	address := freePort(t)
	p := start(t, "--http-address", address)
	shows(t, address, `nfcommsd_device_state{device="sim0",state="ready"} 1`)
	shows(t, address, `nfcommsd_device_state{device="sim0",state="drained"} 0`)
	_, err := p.client().Devices.DrainDevice(deadline(t), &nfcommsv1.DrainDeviceRequest{Name: "devices/sim0"})
	require.NoError(t, err)
	shows(t, address, `nfcommsd_device_state{device="sim0",state="drained"} 1`)
	shows(t, address, `nfcommsd_device_state{device="sim0",state="ready"} 0`)
	p.stop()
}

// TestCallTimes: the time of each method's calls is shown, and to a scraper that
// takes exemplars the trace of one.
func TestCallTimes(t *testing.T) {
	address := freePort(t)
	p := start(t, "--http-address", address)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, header := range []string{"00-" + trace + "-00f067aa0ba902b7-01", "no trace\""} {
		ctx := metadata.AppendToOutgoingContext(deadline(t), "traceparent", header)
		_, err := p.client().Devices.ListDevices(ctx, &nfcommsv1.ListDevicesRequest{})
		require.NoError(t, err)
	}
	const count = `grpc_server_handling_seconds_count{grpc_method="ListDevices",grpc_service="nfcomms.v1.DeviceService",grpc_type="unary"} 2`
	shows(t, address, count)
	req, err := http.NewRequestWithContext(deadline(t), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Regexp(t, `grpc_server_handling_seconds_bucket\{grpc_method="ListDevices".*\} \d+ # \{trace_id="`+trace+`"\} `, string(body))
	require.NotContains(t, string(body), "no trace")
	http.DefaultClient.CloseIdleConnections()
	p.stop()
}

// TestPageIsReadable: eight devices are shown one by one, and of calls nobody made there is little.
func TestPageIsReadable(t *testing.T) {
	address := freePort(t)
	var devices []string
	for i := range 8 {
		devices = append(devices, fmt.Sprintf("sim%d=sim:", i))
	}
	p := start(t, "--http-address", address, "--devices", strings.Join(devices, ","))
	client := &http.Client{}
	defer client.CloseIdleConnections()
	_, body := get(t, client, "http://"+address+"/metrics", "", "")
	require.Contains(t, body, `nfcomms_device_state{device="sim7",state="ready"} 1`)
	require.NotContains(t, body, `device="_other"`)
	require.Less(t, strings.Count(body, "\ngrpc_server_"), 100)
	client.CloseIdleConnections()
	p.stop()
	p = start(t, "--http-address", address, "--devices", strings.Join(devices, ","), "--http-max-series", "1000")
	_, body = get(t, client, "http://"+address+"/metrics", "", "")
	require.Contains(t, body, `device="_other"`)
	client.CloseIdleConnections()
	p.stop()
}

// TestReloadIsShown: the metrics say that a reload failed, and that the next one
// did not.
func TestReloadIsShown(t *testing.T) {
	address := freePort(t)
	p := newProcess(t)
	const good = "devices:\n  sim0: \"sim:\"\n"
	p.args = append(p.args, "--http-address", address, "--config", p.file("c.yaml", good))
	p.run()
	p.await("READY=1")
	shows(t, address, "nfcommsd_config_last_reload_successful 1")
	for _, broken := range []string{"bogus: 1\n", "devices:\n  sim0: \"sim:?bogus=1\"\n"} {
		p.file("c.yaml", broken)
		p.signal(syscall.SIGHUP)
		shows(t, address, "nfcommsd_config_last_reload_successful 0")
		p.file("c.yaml", good)
		p.signal(syscall.SIGHUP)
		shows(t, address, "nfcommsd_config_last_reload_successful 1")
	}
	p.stop()
}

// TestCertificateEndIsShown: the metrics say when the first certificate expires,
// also after it was replaced, and a reload with files that do not fit fails.
func TestCertificateEndIsShown(t *testing.T) {
	ca, address := testcert.New(t), freePort(t)
	dir, end := t.TempDir(), time.Now().Add(100*time.Hour)
	files := certificates(t, dir, ca.IssueUntil(t, "server", "", end), ca)
	p := start(t, append(files, "--tcp-address", "127.0.0.1:0", "--http-address", address)...)
	line := func(end time.Time) string {
		return `nfcommsd_certificate_expiry_timestamp_seconds{setting="tcp.certificate"} ` + strconv.FormatFloat(float64(end.Unix()), 'g', -1, 64)
	}
	shows(t, address, line(end))
	end = end.Add(time.Hour)
	certificates(t, dir, ca.IssueUntil(t, "server", "", end), ca)
	shows(t, address, line(end))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), ca.Issue(t, "another", "").Key, 0o600))
	p.signal(syscall.SIGHUP)
	shows(t, address, "nfcommsd_config_last_reload_successful 0")
	shows(t, address, line(end))
	p.stop()
}

// TestJSONLog: every line of a log in JSON is JSON, whatever strangers send, and
// also the one that says why there is no daemon.
func TestJSONLog(t *testing.T) {
	ca, web, control := testcert.New(t), freePort(t), freePort(t)
	dir := t.TempDir()
	files := certificates(t, dir, ca.Issue(t, "server", ""), ca)
	config := fmt.Sprintf("tls_server_config: {cert_file: %s/tls.crt, key_file: %s/tls.key}\n", dir, dir)
	p := newProcess(t, append(files, "--tcp-address", control, "--http-address", web, "--log-format", "json")...)
	p.args = append(p.args, "--http-web-config", p.file("web.yaml", config))
	p.run()
	p.await("READY=1")
	for _, address := range []string{web, control} {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		require.NoError(t, err)
		_, _ = conn.Read(make([]byte, 1024)) // until it is dealt with
		conn.Close()
		if conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
			conn.Close()
		}
	}
	p.logged("TLS handshake error")
	p.stop()
	isJSON(t, p.log.String())

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	code, log := fails(t, "--http-address", taken.Addr().String(), "--log-format", "json")
	require.Equal(t, exitFailed, code)
	require.Contains(t, log, "address already in use")
	isJSON(t, log)
}

func isJSON(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

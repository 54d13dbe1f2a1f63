package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// soakFor is how long each soak runs. Zero is a short slice that checks what
// must hold whatever the machine does, and no times.
var soakFor = flag.Duration("soak", 0, "how long to soak; 0 for a short slice without limits of time")

const (
	shortSoak = time.Second
	// mostSlower is how much slower half of the data plane's messages may get, as a ratio.
	mostSlower = 1.10
	// mostGrowth is how much memory may grow from the first half of the bouts to the second, in bytes.
	mostGrowth = 16 << 20
	// mostWork is the processor time of the daemon for that of its attackers.
	mostWork = 1.0
)

// attacker is the user that misbehaves, where this test may become another.
const attacker = 65534

// invited are the flags that give the attackers a role to abuse.
func invited() []string {
	return []string{"--socket-mode", "0666", "--roles-operator", fmt.Sprintf("uid:%d", attacker)}
}

// attackers starts processes that misbehave, as another user where that is
// possible, and returns functions that end them and report their processor time.
func attackers(t testing.TB, address string, names ...string) (stop func() time.Duration) {
	if os.Geteuid() != 0 {
		return launchAll(t, nil, address, names...)
	}
	return launchAll(t, &syscall.Credential{Uid: attacker, Gid: attacker}, address, names...)
}

// launchAll starts a process for each attack. The function that it returns ends them and
// returns the processor time that they used.
func launchAll(t testing.TB, who *syscall.Credential, address string, names ...string) (stop func() time.Duration) {
	var ends []func() time.Duration
	for _, name := range names {
		cmd := exec.Command("/proc/self/exe", address)
		cmd.Env = append(os.Environ(), childEnv+"="+name)
		cmd.Stdout = os.Stderr
		if who != nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
		}
		in, err := cmd.StdinPipe() // closes with this process, whatever ends it
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		ends = append(ends, func() time.Duration {
			in.Close()
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
			return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		})
	}
	return func() (used time.Duration) {
		for _, end := range ends {
			used += end()
		}
		return used
	}
}

// inProcess runs a daemon inside this process and returns its address.
func inProcess(t *testing.T) (*daemon, string) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := config.AddFlags(set)
	dir, err := os.MkdirTemp("", "nfcommsd")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "s")
	require.NoError(t, set.Parse(append(invited(), "--socket-path", path, "--log-level", "error")))
	conf, err := loadValid(flags, nil)
	require.NoError(t, err)
	log, level := newLogger(conf.Log, io.Discard)
	d, err := newDaemon(conf, log, level)
	require.NoError(t, err)
	s, err := openSockets(conf)
	require.NoError(t, err)
	d.openDevices(conf.Devices)
	d.start(s)
	t.Cleanup(func() {
		d.drain(make(chan os.Signal))
		d.serving.Wait()
	})
	return d, "unix://" + path
}

// measure measures round trips of the data plane for a while.
func measure(t *testing.T, ch *nfcomms.Channel, d time.Duration) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	msg, buf := make([]byte, 32), make([]byte, nfcomms.MessageSize)
	ctx := deadline(t)
	for end := time.Now().Add(d); ; {
		start := time.Now()
		require.NoError(t, ch.Send(ctx, msg))
		_, err := ch.Receive(ctx, buf)
		require.NoError(t, err)
		now := time.Now()
		_ = h.RecordValue(now.Sub(start).Nanoseconds()) // beyond a minute is beyond the test
		if now.After(end) {
			return h
		}
	}
}

// planes are where the attackers are while the data plane is measured.
var planes = [...]string{"nowhere", "at another daemon", "here"}

// TestSoakDataPlane measures an application's messages while its control plane is
// abused, while the same attackers abuse a daemon of another process, and in quiet, in
// turns. Attackers take processors from everybody on their machine; what they take
// from the process that they attack must be no more than from a neighbour. That holds for half of the
// messages: the slower ones are those that lost their processor for a while.
func TestSoakDataPlane(t *testing.T) {
	total, rounds := shortSoak, 2
	if *soakFor > 0 {
		total, rounds = *soakFor, 9
	}
	slice := total / time.Duration(len(planes)*rounds)
	d, address := inProcess(t)
	neighbour := start(t, append(invited(), "--log-level", "error")...)
	addresses := [...]string{"", "unix://" + neighbour.socket, address}
	dev, err := nfcomms.Open(deadline(t), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	require.NoError(t, d.control.Attach("app", dev))
	ch, err := dev.Subscribe(deadline(t), nfcomms.Loopback)
	require.NoError(t, err)
	defer ch.Close()

	measure(t, ch, slice/2) // warm
	var medians [len(planes)][]float64
	for range rounds {
		for where, address := range addresses {
			h := measureBeside(t, ch, address, slice)
			t.Logf("attackers %s: p50 %d ns, p90 %d, p99 %d", planes[where], h.ValueAtPercentile(50), h.ValueAtPercentile(90), h.ValueAtPercentile(99))
			medians[where] = append(medians[where], float64(h.ValueAtPercentile(50)))
		}
	}
	neighbour.stop()
	ratios := make([]float64, rounds) // of neighbours in time: the machine changes as well
	for i := range ratios {
		ratios[i] = medians[2][i] / medians[1][i]
	}
	slices.Sort(ratios)
	t.Logf("p50 against attackers elsewhere: %.2f", ratios)
	if *soakFor > 0 {
		require.LessOrEqual(t, ratios[rounds/2], mostSlower)
	}
}

// measureBeside measures round trips of the data plane beside attackers of the daemon
// at the address, if there is one.
func measureBeside(t *testing.T, ch *nfcomms.Channel, address string, d time.Duration) *hdrhistogram.Histogram {
	if address != "" {
		stop := attackers(t, address, slices.Sorted(maps.Keys(attacks))...)
		defer stop()
		time.Sleep(min(200*time.Millisecond, d/5)) // let them start; the measurement starts after
	}
	return measure(t, ch, d)
}

// usage is what a process holds.
type usage struct {
	rss, goroutines, files int
	cpu                    time.Duration // since it began
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// usage asks the kernel and the daemon itself.
func (p *process) usage(client *http.Client, web string) (u usage) {
	u.rss = p.resident()
	u.cpu = p.cpu()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	require.NoError(p.t, err)
	u.files = len(fds)
	_, body := get(p.t, client, "http://"+web+"/metrics", "", "")
	m := goroutines.FindStringSubmatch(body)
	require.NotNil(p.t, m)
	u.goroutines, err = strconv.Atoi(m[1])
	require.NoError(p.t, err)
	return u
}

// cpu returns the processor time that the daemon has used.
func (p *process) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	require.NoError(p.t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	var ticks int
	for _, f := range fields[12:14] { // utime and stime, the 14th and 15th of all
		n, err := strconv.Atoi(f)
		require.NoError(p.t, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ, which is fixed
}

func (u usage) String() string {
	return fmt.Sprintf("%.1f MiB, %d goroutines, %d files", float64(u.rss)/(1<<20), u.goroutines, u.files)
}

// settled waits until the daemon holds no more than before the attack: of
// goroutines and files exactly, as nobody is connected.
func (p *process) settled(client *http.Client, web string, before usage) usage {
	var now usage
	require.Eventually(p.t, func() bool {
		now = p.usage(client, web)
		return now.goroutines <= before.goroutines+2 && now.files <= before.files+1
	}, patience, 50*time.Millisecond, "before: %v, now: %v", before, &now)
	return now
}

// TestSoakDaemon abuses a daemon for a while, in bouts. A client that behaves is
// served all the time; after each bout nothing is left of the attackers, memory stays
// bounded, and the daemon did less for them than they themselves.
func TestSoakDaemon(t *testing.T) {
	// The short slice runs beside other tests, which may starve a firmware for
	// longer than it may be silent.
	total, bouts, patient := shortSoak, 1, []string{"--devices", "sim0=sim:?beat=2s", "--health-timeout", "20s"}
	if *soakFor > 0 {
		total, bouts, patient = *soakFor, 6, nil
	}
	web := freePort(t)
	p := start(t, append(append(invited(), patient...), "--http-address", web, "--log-level", "error", "--limits-handshake", "3s")...)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	c := p.client()
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, c, ""))
	before := p.usage(client, web)
	t.Logf("before: %v", before)
	var memory []int
	var work []float64
	for bout := range bouts {
		stop := attackers(t, "unix://"+p.socket, slices.Sorted(maps.Keys(attacks))...)
		used, began := p.cpu(), time.Now()
		served := serveThrough(t, c, total/time.Duration(bouts))
		theirs := stop()
		ours, wall := p.cpu()-used, time.Since(began)
		now := p.settled(client, web, before)
		t.Logf("bout %d: %v, %d good calls, %.2f processors, of its attackers %.2f", bout, now, served,
			ours.Seconds()/wall.Seconds(), theirs.Seconds()/wall.Seconds())
		work = append(work, ours.Seconds()/theirs.Seconds())
		memory = append(memory, now.rss)
	}
	slices.Sort(work)
	if *soakFor > 0 {
		// The garbage of a bout may stay for a while, in any of them; kept memory is in all later ones.
		require.Less(t, slices.Min(memory[bouts/2:]), slices.Max(memory[:bouts/2])+mostGrowth, "memory after each bout: %v", memory)
		require.Less(t, work[bouts/2], mostWork, "processor time that attackers cost, for what they use of their own")
	}
	require.NotContains(t, p.log.String(), "panicked")
	require.NotContains(t, p.log.String(), "DATA RACE")
	client.CloseIdleConnections()
	p.stop()
}

// serveThrough calls with a connection that exists already, which must succeed
// each time, and returns how often. It pauses after each call, so that the
// daemon's work for it is not taken for work for its attackers.
func serveThrough(t *testing.T, c *control.Client, d time.Duration) (n int) {
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		ctx, cancel := context.WithTimeout(deadline(t), patience)
		r, err := c.Health.Check(ctx, &healthpb.HealthCheckRequest{})
		cancel()
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, r.Status)
		time.Sleep(5 * time.Millisecond)
	}
	return n
}

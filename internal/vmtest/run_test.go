//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// The frames of a guest that does all it should.
const (
	helloFrame = `{"Kind":"hello","Program":-1,"Text":"6.1"}`
	beginFrame = `{"Kind":"begin","Program":0}`
	exitFrame  = `{"Kind":"exit","Program":0}`
	pinsFrame  = `{"Kind":"check","Program":0,"Name":"pins"}`
	endFrame   = `{"Kind":"end","Program":-1}`
)

// frames is a shell program that writes frames like a guest.
func frames(list ...string) string {
	return "cat <<'EOF'\n" + strings.Join(list, "\n") + "\nEOF\n"
}

// fakeBoot makes a boot whose QEMU is a shell program.
func fakeBoot(t *testing.T, script string) *boot {
	t.Helper()
	qemu := filepath.Join(t.TempDir(), "qemu")
	require.NoError(t, os.WriteFile(qemu, []byte("#!/bin/sh\n"+script), 0o700))
	b := &boot{
		job:      job{name: "j"},
		programs: []program{{name: "prog", kind: goMain}},
		machine:  vm.Machine{QEMU: qemu, Kernel: "vmlinux", Initrd: "initrd"},
		folder:   t.TempDir(), scratch: t.TempDir(), patience: time.Minute,
	}
	return b
}

// play runs a boot and returns its events and how its tests ended.
func play(t *testing.T, b *boot) ([]byte, string) {
	t.Helper()
	var out bytes.Buffer
	_, err := b.run(t.Context(), &stream{w: &out})
	require.NoError(t, err)
	require.NoDirExists(t, b.scratch)
	return out.Bytes(), strings.Join(outcomes(t, out.Bytes()), "; ")
}

func TestRunPasses(t *testing.T) {
	b := fakeBoot(t, "echo '[ 1.0] Linux' >&3\n"+frames(helloFrame, beginFrame,
		`{"Kind":"output","Program":0,"Data":"bW92ZWQK"}`, exitFrame, pinsFrame,
		`{"Kind":"check","Program":0,"Name":"log"}`,
		`{"Kind":"check","Program":-1,"Name":"unload nfcomms"}`,
		`{"Kind":"file","Program":-1,"Name":"/sys/x/../a.gcda","Data":"AQID"}`, endFrame)+"exit 33")
	var echo bytes.Buffer
	b.echo = &echo
	text, ends := play(t, b)
	require.Equal(t, "vm/j/prog run pass; vm/j/prog pass; vm/j pins-after-prog pass; vm/j unload-nfcomms pass; "+
		"vm/j boot pass; vm/j kernel-log pass; vm/j end pass; vm/j pass", ends)
	require.Equal(t, "moved\n", outputOf(text, "run"))
	require.Equal(t, "moved\n", echo.String())
	console, err := os.ReadFile(filepath.Join(b.folder, "console.log"))
	require.NoError(t, err)
	require.Equal(t, "[ 1.0] Linux\n", string(console))
	data, err := os.ReadFile(filepath.Join(b.folder, "files/sys/a.gcda"))
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 3}, data)
}

func TestRunFails(t *testing.T) {
	good := frames(helloFrame, beginFrame, exitFrame, pinsFrame, endFrame)
	for _, c := range []struct {
		name, script string
		want         string // the test that must fail
		says         string
	}{
		{"dead guest", frames(helloFrame, beginFrame) + "echo 'a last line' >&3; exit 0", "end", "a last line"},
		{"program cut off", frames(helloFrame, beginFrame) + "exit 0", "run", "the machine ended first"},
		{"program never ran", frames(helloFrame, endFrame) + "exit 33", "run", "before its turn"},
		{"no guest", "echo 'qemu: bad option' >&2; exit 1", "boot", "bad option"},
		{"wrong status", good + "exit 0", "end", "exit status is 0"},
		{"no end", frames(helloFrame, beginFrame, exitFrame) + "exit 33", "end", "did not come to its end"},
		{"warning", "echo '[ 1.0] WARNING: CPU: 0' >&3\n" + good + "exit 33", "kernel-log", "WARNING: CPU: 0"},
		{"leaked pin", frames(helloFrame, beginFrame, exitFrame,
			`{"Kind":"check","Program":0,"Name":"pins","Text":"6 pages still pinned"}`, endFrame) + "exit 33", "pins-after-prog", "6 pages"},
		{"exit status", frames(helloFrame, beginFrame, `{"Kind":"exit","Program":0,"Status":7}`, endFrame) + "exit 33", "run", "exit status 7"},
		{"time-out", frames(helloFrame, beginFrame, `{"Kind":"exit","Program":0,"Status":-1,"Text":"still running"}`, endFrame) + "exit 33", "run", "still running"},
		{"noise", good + "echo noise; exit 33", "end", "decode frame"},
		{"unknown frame", frames(helloFrame, beginFrame, exitFrame, `{"Kind":"odd","Program":0}`, endFrame) + "exit 33", "end", "unknown frame"},
		{"wrong order", frames(helloFrame, `{"Kind":"begin","Program":4}`, beginFrame, exitFrame, endFrame) + "exit 33", "end", "program 4 began"},
		{"no device", frames(helloFrame, `{"Kind":"device","Program":-1,"Text":"kill"}`, beginFrame, exitFrame, endFrame) + "exit 33", "end", "there are 0 devices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := fakeBoot(t, c.script)
			text, ends := play(t, b)
			require.Contains(t, ends, " "+c.want+" fail")
			require.Contains(t, outputOf(text, c.want)+outputOf(text, "end"), c.says)
			require.Contains(t, ends+";", "vm/j ", "the job's own result is there")
			again, err := os.ReadFile(filepath.Join(b.folder, "again.sh"))
			require.NoError(t, err)
			require.Contains(t, string(again), b.machine.QEMU)
		})
	}
}

func TestFailureSaysHowToRepeat(t *testing.T) {
	b := fakeBoot(t, "exit 1")
	text, _ := play(t, b)
	said := outputOf(text, "")
	require.Contains(t, said, b.machine.Command())
	require.Contains(t, said, filepath.Join(b.folder, "again.sh"))
}

// TestTimeLimits ends guests that hang, at every stage.
func TestTimeLimits(t *testing.T) {
	pid := func(text []byte) int {
		var n int
		_, err := fmt.Sscan(outputOf(text, "run"), &n)
		require.NoError(t, err)
		return n
	}
	t.Run("boot", func(t *testing.T) {
		b := fakeBoot(t, "exec sleep 1000")
		b.patience = 50 * time.Millisecond
		text, ends := play(t, b)
		require.Contains(t, ends, "vm/j boot fail")
		require.Contains(t, outputOf(text, "end"), "not up after 50ms")
	})
	t.Run("boots at last", func(t *testing.T) {
		mark := filepath.Join(t.TempDir(), "mark")
		b := fakeBoot(t, "[ -e "+mark+" ] || { touch "+mark+"; exec sleep 1000; }\n"+
			frames(helloFrame, beginFrame, exitFrame, pinsFrame, endFrame)+"exit 33")
		b.patience = 5 * time.Second // the shell has to come so far
		_, ends := play(t, b)
		require.Contains(t, ends, "vm/j boot pass")
		require.NotContains(t, ends, "fail")
	})
	t.Run("job", func(t *testing.T) {
		b := fakeBoot(t, frames(helloFrame, beginFrame)+
			`echo "{\"Kind\":\"output\",\"Program\":0,\"Data\":\"$(echo $$ | base64)\"}"`+"\nexec sleep 1000")
		b.echo = writer(func([]byte) { b.late.Reset(0) })
		text, ends := play(t, b)
		require.Contains(t, ends, "vm/j boot pass")
		require.Contains(t, outputOf(text, "end"), "not done after 1h0m0s")
		require.ErrorIs(t, syscall.Kill(pid(text), 0), syscall.ESRCH)
	})
}

// TestInterrupt is Ctrl-C: the machine and the device end, the run says so.
func TestInterrupt(t *testing.T) {
	b := fakeBoot(t, frames(helloFrame, beginFrame)+"exec sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	b.echo = writer(func([]byte) {})
	go func() {
		for {
			if console, err := os.ReadFile(filepath.Join(b.folder, "again.sh")); err == nil && len(console) > 0 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var out bytes.Buffer
	_, err := b.run(ctx, &stream{w: &out})
	require.NoError(t, err)
	require.Contains(t, outputOf(out.Bytes(), "end"), "context canceled")
}

// writer is a function that takes what is written.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

func TestDeviceThatDoesNotStart(t *testing.T) {
	b := fakeBoot(t, "exit 33")
	b.devices = []deviceSpec{b.newDevice(0, "false")}
	text, ends := play(t, b)
	require.Equal(t, "vm/j device fail; vm/j fail", ends)
	require.Contains(t, outputOf(text, "device"), "ended before it listened")
}

func TestBus(t *testing.T) {
	for _, c := range []struct {
		name, report string
		iommu        bool
		want         string
		script       string
	}{
		{name: "struck", report: `{"clients":[{"dma_faults":2,"script_faults":2}]}`, iommu: true, script: "wild+3"},
		{name: "harmless", report: `{"clients":[{"script_faults":2}]}`, iommu: true, script: "count+5,drop@9"},
		{name: "never struck", report: `{"clients":[{}]}`, script: "wild+3", want: "never struck"},
		{name: "not contained", report: `{"clients":[{"script_faults":2}]}`, iommu: true, script: "late", want: "no access failed"},
		{name: "strays", report: `{"clients":[{"dma_faults":1,"script_faults":2}]}`, script: "count+5", want: "not mapped"},
		{"clean", `{"clients":[{"dma_ranges":0}]}`, true, "", ""},
		{"all memory", `{"clients":[{"dma_ranges":7}]}`, false, "", ""},
		{"leaked mapping", `{"clients":[{"dma_ranges":1}]}`, true, "1 ranges are still mapped", ""},
		{"fault", `{"clients":[{"dma_faults":2,"last_fault":"write 0x10"}]}`, false, "write 0x10", ""},
		{"cut off", `{"clients":[{"error":"bad message"}]}`, false, "bad message", ""},
		{"nobody", `{"clients":[]}`, false, "0 clients", ""},
		{"no JSON", `{`, false, "read the device's report", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := device{deviceSpec: deviceSpec{script: c.script, report: filepath.Join(t.TempDir(), "r")}}
			require.NoError(t, os.WriteFile(d.report, []byte(c.report), 0o600))
			err := d.bus(c.iommu, true)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
	require.ErrorIs(t, (&device{deviceSpec: deviceSpec{report: "/none"}}).bus(false, true), os.ErrNotExist)
}

func TestVfioLines(t *testing.T) {
	require.Empty(t, vfioLines("qemu: terminating on signal 15\n"))
	require.Equal(t, "vfio-user: bad header\n", vfioLines("x\nvfio-user: bad header\ny\n"))
}

// TestNoGoArgumentsAreLost checks what a guest's program is started with.
func TestNoGoArgumentsAreLost(t *testing.T) {
	p := program{name: "x", kind: goTest, args: []string{"-test.run=A"}, timeout: 8 * time.Minute}
	require.Equal(t, []string{"-test.v=test2json", "-test.timeout=7m0s", "-test.run=A"}, p.wire("/bin/x").Args)
	p.kind, p.timeout = cTest, 0
	w := p.wire("/bin/x")
	require.Equal(t, []string{"-test.run=A"}, w.Args)
	require.Equal(t, programTimeout, w.Timeout)
}

// TestLock has one wait for the other.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	unlock, err := lock(dir)
	require.NoError(t, err)
	second := make(chan func())
	go func() {
		u, err := lock(dir)
		if err != nil {
			t.Error(err)
		}
		second <- u
	}()
	select {
	case <-second:
		t.Fatal("two hold the lock")
	case <-time.After(20 * time.Millisecond):
	}
	unlock()
	(<-second)()
	_, err = lock("/proc/none")
	require.Error(t, err)
}

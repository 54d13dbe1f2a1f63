//go:build linux

package vm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// script writes a shell program that stands in for QEMU or the device.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o700))
	return name
}

// recorder keeps what a machine said.
type recorder struct {
	frames  []wire.Frame
	console []string
}

func (r *recorder) events() Events {
	return Events{
		Frame:   func(f wire.Frame) { r.frames = append(r.frames, f) },
		Console: func(line string) { r.console = append(r.console, line) },
	}
}

func TestBoot(t *testing.T) {
	m := Machine{QEMU: script(t, `
echo 'first line' >&3
echo '{"Kind":"hello","Program":-1,"Text":"6.1"}'
echo '{"Kind":"end","Program":-1}'
printf 'last line' >&3
echo 'vfio: bad' >&2
exit 33`)}
	var r recorder
	outcome, err := m.Boot(t.Context(), r.events())
	require.NoError(t, err)
	require.Positive(t, outcome.Spent)
	require.Equal(t, Outcome{Status: Machine{}.ExitDone(), Stderr: "vfio: bad\n", Spent: outcome.Spent}, outcome)
	require.Equal(t, []wire.Frame{{Kind: wire.Hello, Program: -1, Text: "6.1"}, {Kind: wire.End, Program: -1}}, r.frames)
	require.Equal(t, []string{"first line", "last line"}, r.console)
}

func TestBootReportsBrokenResults(t *testing.T) {
	// More follows than a pipe holds: the machine must not block on it.
	m := Machine{QEMU: script(t, `echo '{"Kind":"hello"'; head -c 300000 /dev/zero; exit 33`)}
	outcome, err := m.Boot(t.Context(), new(recorder).events())
	require.ErrorContains(t, err, "decode frame")
	require.Equal(t, Machine{}.ExitDone(), outcome.Status)
}

func TestBootWithoutQEMU(t *testing.T) {
	_, err := Machine{QEMU: filepath.Join(t.TempDir(), "none")}.Boot(t.Context(), Events{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "start none")
}

// TestBootStops ends machines that do not end, one that is deaf to SIGTERM too.
func TestBootStops(t *testing.T) {
	reason := errors.New("out of time")
	for name, text := range map[string]string{
		"willing": "exec sleep 1000",
		"deaf":    "trap '' TERM\necho '{\"Kind\":\"hello\",\"Program\":'$$'}'\nwhile :; do sleep 0.1; done",
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(text, "exec", "echo '{\"Kind\":\"hello\",\"Program\":'$$'}'\nexec", 1)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			pid := 0
			outcome, err := Machine{QEMU: script(t, text)}.Boot(ctx, Events{Frame: func(f wire.Frame) {
				pid = f.Program
				cancel(reason)
			}})
			require.ErrorIs(t, err, reason)
			require.Equal(t, -1, outcome.Status)
			require.NotZero(t, pid)
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is still there", pid)
		})
	}
}

func TestStderrKeepsItsEnd(t *testing.T) {
	m := Machine{QEMU: script(t, `i=0; while [ $i -lt 3000 ]; do echo "line number $i" >&2; i=$((i+1)); done`)}
	outcome, err := m.Boot(t.Context(), new(recorder).events())
	require.NoError(t, err)
	require.Len(t, outcome.Stderr, tailBytes)
	require.True(t, strings.HasSuffix(outcome.Stderr, "line number 2999\n"))
}

// helper makes the test binary itself a device: it listens and waits.
const helper = "VM_TEST_LISTEN"

func init() {
	socket := os.Getenv(helper)
	if socket == "" {
		return
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: socket})
	}
	if err == nil && os.Getenv("VM_TEST_DEAF") == "" {
		err = syscall.Listen(fd, 1)
	}
	if err != nil {
		println("helper:", err.Error())
		os.Exit(3)
	}
	println("listening")
	time.Sleep(time.Hour)
}

// device starts the helper as a device.
func device(t *testing.T) (*Device, *strings.Builder) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	t.Setenv(helper, socket)
	log := new(strings.Builder)
	d, err := StartDevice(t.Context(), []string{os.Args[0]}, socket, log)
	require.NoError(t, err)
	d.ending = time.Millisecond // this one does not end by itself
	return d, log
}

func TestDevice(t *testing.T) {
	d, log := device(t)
	require.False(t, d.Killed())
	require.NoError(t, d.Stop())
	require.Equal(t, "listening\n", log.String())
	require.NoError(t, d.Command(wire.DeviceStop), "a device that is gone takes any signal")
}

func TestDeviceCommands(t *testing.T) {
	d, _ := device(t)
	state := func() string {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(d.p.cmd.Process.Pid) + "/stat")
		require.NoError(t, err)
		return strings.Fields(string(text))[2]
	}
	require.NoError(t, d.Command(wire.DeviceStop))
	require.Eventually(t, func() bool { return state() == "T" }, time.Minute, time.Millisecond)
	require.NoError(t, d.Command(wire.DeviceContinue))
	require.Eventually(t, func() bool { return state() != "T" }, time.Minute, time.Millisecond)
	require.ErrorContains(t, d.Command("dance"), "device command")
	require.NoError(t, d.Command(wire.DeviceStop))
	require.NoError(t, d.Command(wire.DeviceKill))
	require.True(t, d.Killed())
	require.NoError(t, d.Stop(), "its death was wanted")
}

func TestStoppedDeviceEnds(t *testing.T) {
	d, _ := device(t)
	require.NoError(t, d.Command(wire.DeviceStop))
	require.NoError(t, d.Stop())
}

func TestDeviceThatDies(t *testing.T) {
	d, _ := device(t)
	require.NoError(t, syscall.Kill(d.p.cmd.Process.Pid, syscall.SIGKILL))
	<-d.p.done
	require.ErrorContains(t, d.Stop(), "signal: killed")

	_, err := StartDevice(t.Context(), []string{script(t, "echo no such option; exit 2")}, "/nowhere", new(strings.Builder))
	require.ErrorContains(t, err, "ended before it listened")
	require.ErrorContains(t, err, "no such option")
}

func TestDeviceThatNeverListens(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	t.Setenv(helper, socket)
	t.Setenv("VM_TEST_DEAF", "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for {
			if _, err := os.Stat(socket); err == nil || ctx.Err() != nil {
				cancel() // it is bound: from here on only listen is missing
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := StartDevice(ctx, []string{os.Args[0]}, socket, new(strings.Builder))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "does not listen")
}

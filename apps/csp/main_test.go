package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cli runs a command line and returns what it printed.
func cli(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return commandtest.Run(ctx, "csp", csp, args...)
}

func TestCSP(t *testing.T) {
	code, out, errs := cli(t.Context(), "--size", "300")
	require.Equal(t, command.ExitOK, code, errs)
	require.Empty(t, errs)
	require.True(t, strings.HasPrefix(out, "times of processes on the host and on a device that is simulated\n"), out)
	for _, e := range examples {
		for _, p := range []placement{onHost, onDevice, onBoth} {
			require.Regexp(t, e.name+` +on `+string(p)+` `, out)
		}
	}
	require.Contains(t, out, "62 primes below 300, by 6 sieves")
	require.Contains(t, out, "5 philosophers ate 4 times, no neighbours at once")
	require.Contains(t, out, "verified: 6 of Hoare's networks did what the paper says, on [host device both]")
}

// open opens a device that has the processes.
func open(t *testing.T, address string) *nfcomms.Device {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	require.NoError(t, load(t.Context(), dev))
	return dev
}

// TestSquash is about the asterisks at an end.
func TestSquash(t *testing.T) {
	dev := open(t, "sim:?islands=2")
	for input, want := range map[string]string{"": "", "*": "*", "**": "^", "***": "^*", "****": "^^", "a*": "a*", "*b": "*b", "a***b": "a^*b"} {
		for _, place := range []placement{onHost, onDevice} {
			n := &network{place: place}
			result := filter(n, "squash", input, squash, want)
			require.NoError(t, n.run(t.Context(), dev))
			_, err := result()
			require.NoError(t, err, "%q on %s", input, place)
		}
	}
}

// TestRendezvous: between two device processes, too, a send ends only when the
// consumer takes the value: of two copies in a row each holds one character.
func TestRendezvous(t *testing.T) {
	dev := open(t, "sim:")
	for _, place := range []placement{onHost, onDevice, onBoth} {
		n := &network{place: place}
		c := channels[byte](3)
		for i := range 2 {
			n.process("copy", 0, ports{in[byte]{c[i]}, out[byte]{c[i+1]}}, func(ctx context.Context) error { return copies(ctx, c[i], c[i+1]) })
		}
		sent := make(chan int, 9) // of all that could be sent
		n.user(func(ctx context.Context) error {
			for i := range 4 {
				if err := c[0].Send(ctx, byte(i)); err != nil {
					return err
				}
				sent <- i
			}
			return nil
		}, out[byte]{c[0]})
		n.user(func(ctx context.Context) error {
			if a, b, more := <-sent, <-sent, len(sent); a != 0 || b != 1 || more != 0 {
				return fmt.Errorf("two copies hold %d characters", 2+more)
			}
			return c[2].Each(ctx, func(byte) error { return nil })
		})
		require.NoError(t, n.run(t.Context(), dev))
	}
}

// TestInterrupted: a network whose user gives up ends everywhere, and the device runs
// the next.
func TestInterrupted(t *testing.T) {
	dev := open(t, "sim:")
	stop := errors.New("enough")
	for _, place := range []placement{onHost, onDevice, onBoth} {
		n := &network{place: place}
		buildPhilosophers(n, 10000)
		c := newChannel[byte]()
		n.process("copy", 0, ports{in[byte]{c}, out[byte]{newChannel[byte]()}}, func(ctx context.Context) error { return copies(ctx, c, newChannel[byte]()) })
		n.user(func(context.Context) error { return stop }, out[byte]{c})
		require.ErrorIs(t, n.run(t.Context(), dev), stop)
	}
	_, err := examples[0].run(t.Context(), dev, onDevice, 100)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, errs := cli(ctx)
	require.Equal(t, command.ExitInterrupted, code)
	require.Equal(t, "csp: interrupted\n", errs)
}

func TestWrong(t *testing.T) {
	n := &network{place: onHost}
	result := filter(n, "copy", "text", copies[byte], "other")
	require.NoError(t, n.run(t.Context(), nil))
	_, err := result()
	require.ErrorIs(t, err, errWrong)
	var eaters table
	require.NoError(t, eaters.toggle(0))
	require.NoError(t, eaters.toggle(2))
	require.ErrorIs(t, eaters.toggle(1), errWrong)
	require.ErrorIs(t, eaters.toggle(3), errWrong)
	_, err = newNative(t).Receive(t.Context())
	require.ErrorIs(t, err, io.EOF)
}

// newNative is a channel whose producer has ended, twice.
func newNative(t *testing.T) *channel[byte] {
	c := newChannel[byte]()
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	return c
}

func TestBadInput(t *testing.T) {
	for line, says := range map[string]string{
		"--on moon":        `--on "moon" is not host`,
		"--size 9":         "--size 9 is not",
		"--size 20000":     "--size 20000 is not",
		"copy paste":       `"paste" is none of copy, squash`,
		"--address card:0": `"card"`,
		"--colour":         "-colour",
	} {
		code, out, errs := cli(t.Context(), strings.Fields(line)...)
		require.Equal(t, command.ExitInput, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	code, _, errs := cli(t.Context(), "--address", "sim:?contexts=1", "--on", "device", "sieve")
	require.Equal(t, command.ExitFailed, code)
	require.Contains(t, errs, "sieve on device: ")
	require.Contains(t, errs, "out of resources")
	require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	code, _, errs = cli(t.Context(), "--help")
	require.Equal(t, command.ExitOK, code)
	require.Contains(t, errs, "usage: csp")
}

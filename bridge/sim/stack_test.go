//go:build cgo

package sim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestProgramsHaveTheirStacks: each process has the stack that its program asks for,
// whichever ran in its context before.
func TestProgramsHaveTheirStacks(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "contexts=1&microengines=8") // those of the services, and two
	defer dev.Close()
	load(ctx, t, dev, build(t, "deep.c"))
	for range 3 {
		for name, use := range map[string]uint64{"roomy": 1000 << 10, "narrow": 8 << 10, "loopback": 0} {
			for range 2 {
				p, err := dev.Start(ctx, bridge.Program{Name: name, Targets: 1, Argument: use})
				require.NoError(t, err)
				ch, err := dev.Subscribe(ctx, p.First)
				require.NoError(t, err)
				if use > 0 {
					_, used := ask(ctx, t, ch)
					require.Equal(t, use, used)
				} else {
					require.NoError(t, ch.Send(ctx, []byte("through")))
				}
				require.NoError(t, dev.Stop(ctx, p.ID))
				require.NoError(t, ch.Close())
			}
		}
	}
}

// TestStackIsBounded: an image whose program asks for more than there is to have is
// refused by a name of its own, and the log has the reason.
func TestStackIsBounded(t *testing.T) {
	ctx := within(t)
	dev, log := openLogged(t, "")
	_, err := dev.Load(ctx, build(t, "deep.c", "STACK=(16<<20)+1"))
	require.ErrorIs(t, err, bridge.ErrTooLarge)
	name, err := dev.Load(ctx, build(t, "deep.c", "STACK=16<<20"))
	require.NoError(t, err)
	p, err := dev.Start(ctx, bridge.Program{Name: name, Targets: 1, Argument: 16<<20 - 8<<10})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	ask(ctx, t, ch)
	require.NoError(t, dev.Close())
	require.Contains(t, log.String(), "asks for a stack over 16 MiB")
}

// TestLoadOnTheSmallestStack: what runs a program's image into the process fits on the
// stack that a device gives its services.
func TestLoadOnTheSmallestStack(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "stack=16KiB")
	defer dev.Close()
	load(ctx, t, dev, answerer(t, "answer", 3))
	tag, _, _ := answerTo(ctx, t, dev, "answer", 1)
	require.EqualValues(t, 3, tag)
}

// TestCrashNamesTheProgram: when a program overruns its stack, or touches what it must
// not, the last line of the process names it.
func TestCrashNamesTheProgram(t *testing.T) {
	image := filepath.Join(t.TempDir(), "deep.so")
	require.NoError(t, os.WriteFile(image, build(t, "deep.c"), 0o600))
	for _, c := range []struct {
		program  string
		argument uint64
		says     string
	}{
		{"deep", 1 << 40, `program "deep" (process 7, island 0) overran its stack of 65536 bytes`},
		{"narrow", 600 << 10, `program "narrow" (process 7, island 0) overran its stack of 16384 bytes`},
		{"wild", 0x10, `program "wild" (process 7, island 0) touched memory that cannot be reached, at 0x10`},
	} {
		child := exec.Command(os.Args[0], "-test.run", "^TestCrashingChild$")
		child.Env = append(os.Environ(), "NFC_CRASH="+c.program, "NFC_ARGUMENT="+strconv.FormatUint(c.argument, 10), "NFC_IMAGE="+image)
		out, err := child.CombinedOutput()
		require.Error(t, err, "%s: it lives on: %s", c.program, out)
		require.Contains(t, string(out), c.says)
		require.Regexp(t, `, in its image at 0x[0-9a-f]+\n`, string(out))
		require.Equal(t, 1, strings.Count(string(out), "nfcomms: device program"), "%s", out)
	}
}

// TestCrashingChild is the process of TestCrashNamesTheProgram that crashes.
func TestCrashingChild(t *testing.T) {
	program := os.Getenv("NFC_CRASH")
	if program == "" {
		return
	}
	ctx := within(t)
	image, err := os.ReadFile(os.Getenv("NFC_IMAGE"))
	require.NoError(t, err)
	argument, err := strconv.ParseUint(os.Getenv("NFC_ARGUMENT"), 10, 64)
	require.NoError(t, err)
	dev := openDevice(t, "")
	load(ctx, t, dev, image)
	p, err := dev.Start(ctx, bridge.Program{Name: program, Targets: 1, Argument: argument})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	ask(ctx, t, ch)
}

//go:build linux

package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

// TestNativePeerFails: a peer that can not be built, crashes, hangs, says nonsense or
// loses messages is left out with its reason, and the others are measured.
func TestNativePeerFails(t *testing.T) {
	// One after the other: a program that was just written can not be run while a
	// process that is being started has it open.
	for peer, says := range map[string]string{
		"kill -SEGV $$":                     "signal: segmentation fault",
		"echo no shared memory >&2; exit 3": "exit status 3: no shared memory",
		"exec /bin/sleep 1000":              "said nothing for 300ms and was ended",
		"trap '' TERM; /bin/sleep 1000":     "said nothing for 300ms and was ended",
		"echo hello":                        `printed "hello"`,
		"echo batch 5":                      "printed 1 of 2 batches, and 0 lines with what they took",
		clitest.FakePeer + "; echo wrong 0": "printed 2 of 2 batches, and 1 lines",
		strings.ReplaceAll(clitest.FakePeer, "wrong 0", "wrong 7"): "7 messages are wrong",
	} {
		t.Run(says, func(t *testing.T) {
			p := &NativeProgram{Library: &NativeLibrary{Name: "a peer", Compiler: filepath.Join(clitest.FakeToolchain(t, peer), "cc")}, Name: "a peer", Limit: time.Minute}
			p.Build(t.Context(), "-O2", nil)
			require.Empty(t, p.Missing)
			defer p.Remove()
			if strings.Contains(says, "300ms") {
				p.Limit = 300 * time.Millisecond
			}
			bad := p.Repeated("a peer", DoesEcho, 64, 2, func(ctx context.Context, _ int) (*NativeRun, error) { return p.Run(ctx, 2, "echo", 64, 3, 2, 2) })
			c := &Comparison{Contenders: []*Contender{NewMemcpy(1024), bad}}
			require.NoError(t, c.Play(t.Context(), 1, time.Millisecond, func(string) {}))
			require.Len(t, c.Contenders, 1)
			require.Len(t, c.Failed, 1)
			require.Contains(t, c.Failed[0], "a peer, 64 B: not measured: ")
			require.Contains(t, c.Failed[0], says)
		})
	}
}

// TestNativePeerIsCancelled: the end of the command is not a peer's failure.
func TestNativePeerIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	side := &Contender{Name: "a peer", optional: true, CPU: SelfCPU, Run: func(ctx context.Context, _ int) (time.Duration, error) {
		cancel()
		return 0, ctx.Err()
	}}
	require.ErrorIs(t, (&Comparison{Contenders: []*Contender{side}}).Play(ctx, 1, 1, func(string) {}), context.Canceled)
}

// TestNativeNotInstalled: a compiler or a library that is missing is said in one line.
func TestNativeNotInstalled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	all := NewNatives(t.Context(), NativeNames())
	require.Empty(t, all.There())
	require.Equal(t, []string{
		"OpenMPI: not measured: not installed: there is no mpicc (Debian: libopenmpi-dev, openmpi-bin)",
		"OpenMPI's synchronous send: not measured: not installed: there is no mpicc (Debian: libopenmpi-dev, openmpi-bin)",
		"UCX: not measured: not installed: there is no cc (Debian: libucx-dev)",
		"iceoryx2: not measured: not installed: there is no cc (its C library, from source)",
	}, all.Missing())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cc"),
		[]byte("#!/bin/sh\necho In file included from a.c >&2\necho 'a.c:1: fatal error: ucp.h: No such file' >&2\nexit 1\n"), 0o755))
	require.NoError(t, all.Remove())
	all = NewNatives(t.Context(), []string{"ucx"})
	require.Equal(t, []string{"UCX: not measured: cc: exit status 1: a.c:1: fatal error: ucp.h: No such file (Debian: libucx-dev)"}, all.Missing())
	require.NoError(t, all.Remove())
}

// TestNativeReal builds and runs the libraries in C that are installed here; of the
// others the report says that they are not.
func TestNativeReal(t *testing.T) {
	all := NewNatives(t.Context(), NativeNames())
	defer all.Remove()
	require.Len(t, all, len(all.There())+len(all.Missing()))
	for _, p := range all.There() {
		for _, args := range [][]any{{"echo", 56, NativeSlots, 2, 5, 0, 0, 0}, {"take", 4096, NativeSlots, 2, 5, 0, 0, 0}, {"stream", 1000, 7, 2, 20, 0, 1, 1}} {
			run, err := p.Run(t.Context(), 2, args...)
			require.NoError(t, err, fmt.Sprint(p.Name, args))
			require.Len(t, run.Batches, 2)
		}
	}
	for _, line := range all.Missing() {
		require.Contains(t, line, ": not measured: ")
	}
}

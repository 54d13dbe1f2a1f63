//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakePeer prints what a peer prints, in no time.
const fakePeer = `i=0; while [ $i -lt $4 ]; do echo batch 1000; i=$((i+1)); done; echo cpu 2000; echo wrong 0`

// fakeToolchain is a PATH with compilers that make every program this shell script,
// and an mpirun that runs it.
func fakeToolchain(t *testing.T, peer string) string {
	dir := t.TempDir()
	compiler := "#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\n/bin/cat >$2 <<'EOF'\n#!/bin/sh\n" + peer + "\nEOF\n/bin/chmod +x $2\n"
	launcher := "#!/bin/sh\nwhile [ $1 != -np ]; do shift; done\nshift 2\nexec \"$@\"\n"
	for name, text := range map[string]string{"cc": compiler, "mpicc": compiler, "mpirun": launcher} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	return dir
}

// TestNativePeers: each library in C that is installed has its rows in each command,
// beside those that do the same.
func TestNativePeers(t *testing.T) {
	t.Setenv("PATH", fakeToolchain(t, fakePeer))
	var r PeersReport
	decode(t, mustRun(t, append(tinyPeers, "--output", "json")...), &r)
	require.Empty(t, r.NotMeasured)
	require.Len(t, r.Small, smallSides+len(nativeLibraries))
	require.Len(t, r.Bulk, 2*(bulkSides+len(nativeLibraries)))
	for i, l := range nativeLibraries {
		small, bulk := r.Small[smallSides+i], r.Bulk[bulkSides+i]
		require.Equal(t, l.name+" in C, other process", small.Peer)
		require.Equal(t, doesEcho, small.Does)
		require.InDelta(t, 10, small.Ns.Median, 1e-9)
		require.Equal(t, doesWord, bulk.Does)
		require.InDelta(t, 1000, bulk.Ns.Median, 1e-9)
		require.Positive(t, bulk.CPUNs.Median)
	}
	var h HMFReport
	decode(t, mustRun(t, hmf("one", "--rounds", "2", "--peers", strings.Join(nativeNames(), ","), "--output", "json")...), &h)
	require.Empty(t, h.NotMeasured)
	require.Len(t, h.Rows, 2+len(nativeLibraries))
	for i, l := range nativeLibraries {
		row := h.Rows[2+i]
		require.Equal(t, l.name+" in C", row.Name)
		require.Equal(t, uint64(2*3*25), row.Verified)
		require.Equal(t, 4, row.MS.N)
		require.InDelta(t, 1e-3, row.MS.Mean, 1e-9, "milliseconds")
	}
	var g GroupReport
	decode(t, mustRun(t, strings.Fields("group --members 2 --targets 1 --sizes 64 --rounds 1 --slice 1ms --transports shm --algorithms isend --output json")...), &g)
	require.Equal(t, []string{groupNoPeers}, g.NotMeasured)
	require.Len(t, g.Rows, 3)
	require.Equal(t, mpiNames[1], g.Rows[2].Name)
	require.InDelta(t, 1e-2, g.Rows[2].Step.Mean, 1e-9, "microseconds of a step; a batch has 100")
}

// TestNativePeerFails: a peer that can not be built, crashes, hangs, says nonsense or
// loses messages is left out with its reason, and the others are measured.
func TestNativePeerFails(t *testing.T) {
	// One after the other: a program that was just written can not be run while a
	// process that is being started has it open.
	for peer, says := range map[string]string{
		"kill -SEGV $$":                                    "signal: segmentation fault",
		"echo no shared memory >&2; exit 3":                "exit status 3: no shared memory",
		"exec /bin/sleep 1000":                             "said nothing for 300ms and was ended",
		"trap '' TERM; /bin/sleep 1000":                    "said nothing for 300ms and was ended",
		"echo hello":                                       `printed "hello"`,
		"echo batch 5":                                     "printed 1 of 2 batches, and 0 lines with what they took",
		fakePeer + "; echo wrong 0":                        "printed 2 of 2 batches, and 1 lines",
		strings.ReplaceAll(fakePeer, "wrong 0", "wrong 7"): "7 messages are wrong",
	} {
		t.Run(says, func(t *testing.T) {
			p := &nativeProgram{library: &nativeLibrary{name: "a peer", compiler: filepath.Join(fakeToolchain(t, peer), "cc")}, name: "a peer", limit: time.Minute}
			p.build(t.Context(), "-O2", nil)
			require.Empty(t, p.missing)
			defer p.remove()
			if strings.Contains(says, "300ms") {
				p.limit = 300 * time.Millisecond
			}
			bad := p.repeated("a peer", doesEcho, 64, 2, func(ctx context.Context, _ int) (*nativeRun, error) { return p.run(ctx, 2, "echo", 64, 3, 2, 2) })
			c := &comparison{contenders: []*contender{newMemcpy(1024), bad}}
			require.NoError(t, c.play(t.Context(), 1, time.Millisecond, func(string) {}))
			require.Len(t, c.contenders, 1)
			require.Len(t, c.failed, 1)
			require.Contains(t, c.failed[0], "a peer, 64 B: not measured: ")
			require.Contains(t, c.failed[0], says)
		})
	}
}

// TestNativePeerIsCancelled: the end of the command is not a peer's failure.
func TestNativePeerIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	side := &contender{name: "a peer", optional: true, cpu: selfCPU, run: func(ctx context.Context, _ int) (time.Duration, error) {
		cancel()
		return 0, ctx.Err()
	}}
	require.ErrorIs(t, (&comparison{contenders: []*contender{side}}).play(ctx, 1, 1, func(string) {}), context.Canceled)
}

// TestNativeNotInstalled: a compiler or a library that is missing is said in one line.
func TestNativeNotInstalled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	all := newNatives(t.Context(), nativeNames())
	require.Empty(t, all.there())
	require.Equal(t, []string{
		"OpenMPI: not measured: not installed: there is no mpicc (Debian: libopenmpi-dev, openmpi-bin)",
		"UCX: not measured: not installed: there is no cc (Debian: libucx-dev)",
		"iceoryx2: not measured: not installed: there is no cc (its C library, from source)",
	}, all.missing())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cc"),
		[]byte("#!/bin/sh\necho In file included from a.c >&2\necho 'a.c:1: fatal error: ucp.h: No such file' >&2\nexit 1\n"), 0o755))
	require.NoError(t, all.remove())
	all = newNatives(t.Context(), []string{"ucx"})
	require.Equal(t, []string{"UCX: not measured: cc: exit status 1: a.c:1: fatal error: ucp.h: No such file (Debian: libucx-dev)"}, all.missing())
	require.NoError(t, all.remove())
}

// TestNativeRing: the ring in C, built twice, is a real peer of both kinds: it echoes,
// answers and streams, and every byte of it is compared.
func TestNativeRing(t *testing.T) {
	var r HMFReport
	decode(t, mustRun(t, hmf("one", "--rounds", "1", "--peers", "", "--build", "O0,O3", "--verify", "full", "--access", "copy", "--output", "json")...), &r)
	require.Empty(t, r.NotMeasured)
	require.Len(t, r.Rows, 4)
	require.Len(t, r.Findings, 1)
	for i, build := range []string{"O0", "O3"} {
		require.Equal(t, "ring in C, -"+build, r.Rows[2+i].Name)
		require.Equal(t, uint64(5*25), r.Rows[2+i].Verified)
	}
	o := hmfOptions{builds: []string{"O1"}}
	p := o.natives(t.Context())[0]
	require.Empty(t, p.missing)
	defer p.remove()
	for _, kind := range []string{"echo", "take"} {
		run, err := p.run(t.Context(), 2, kind, 5000, nativeSlots, 4, 10, 0, 0, 0)
		require.NoError(t, err)
		require.Len(t, run.batches, 4)
		require.Positive(t, slices.Min(run.batches))
		require.GreaterOrEqual(t, run.used, run.cpu/2, "both are of the same processes")
	}
	run, err := p.run(t.Context(), 2, "echo", 64, nativeSlots, 1<<30, 1, 1, 0, 0)
	require.NoError(t, err, "a millisecond is over long before so many batches")
	require.NotEmpty(t, run.batches)
	_, err = p.run(t.Context(), 2, "echo", 7, nativeSlots, 1, 1, 0, 0, 0)
	require.ErrorContains(t, err, "SIZE is at least 8")
}

// TestNativeReal builds and runs the libraries in C that are installed here; of the
// others the report says that they are not.
func TestNativeReal(t *testing.T) {
	all := newNatives(t.Context(), nativeNames())
	defer all.remove()
	require.Len(t, all, len(all.there())+len(all.missing()))
	for _, p := range all.there() {
		for _, args := range [][]any{{"echo", 56, nativeSlots, 2, 5, 0, 0, 0}, {"take", 4096, nativeSlots, 2, 5, 0, 0, 0}, {"stream", 1000, 7, 2, 20, 0, 1, 1}} {
			run, err := p.run(t.Context(), 2, args...)
			require.NoError(t, err, fmt.Sprint(p.name, args))
			require.Len(t, run.batches, 2)
		}
	}
	for _, line := range all.missing() {
		require.Contains(t, line, ": not measured: ")
	}
}

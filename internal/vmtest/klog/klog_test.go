package klog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scan feeds a whole log to a new scanner.
func scan(t *testing.T, text string, allowed ...string) []Report {
	t.Helper()
	s, err := NewScanner(allowed...)
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		s.Line(line)
	}
	return s.Reports()
}

// TestSamples reads logs of real machines. The file's name starts with a word of
// the line by which the first report is known; in clean-* there is none.
func TestSamples(t *testing.T) {
	names, err := filepath.Glob("testdata/*.log")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			reports := scan(t, string(text))
			if strings.HasPrefix(filepath.Base(name), "clean-") {
				require.Empty(t, reports)
				return
			}
			require.NotEmpty(t, reports)
			require.Equal(t, "load", reports[0].During)
			kind, _, _ := strings.Cut(filepath.Base(name), "-")
			require.Contains(t, strings.ToLower(reports[0].Lines[0]), kind)
		})
	}
}

func TestEveryKindOfReport(t *testing.T) {
	for _, line := range []string{
		"BUG: KASAN: use-after-free in nfcomms_read+0x10/0x20 [nfcomms]",
		"BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580",
		"BUG: kernel NULL pointer dereference, address: 0000000000000000",
		"BUG: scheduling while atomic: insmod/77/0x00000002",
		"BUG: Bad page state in process test  pfn:0a1b2",
		"kernel BUG at mm/slub.c:300!",
		"WARNING: CPU: 1 PID: 77 at kernel/dma/debug.c:1014 check_sync+0x10/0x20",
		"WARNING: possible circular locking dependency detected",
		"WARNING: suspicious RCU usage",
		"INFO: trying to register non-static key.",
		"INFO: task test:77 blocked for more than 60 seconds.",
		"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
		"general protection fault, probably for non-canonical address 0xdead: 0000 [#1] PREEMPT SMP",
		"Oops: 0002 [#1] PREEMPT SMP",
		"Kernel panic - not syncing: Fatal exception",
		"UBSAN: shift-out-of-bounds in nfc_ledger.c:10:2",
		"DMA-API: nfcomms 0000:00:03.0: device driver frees DMA memory with wrong function",
		"DMAR: DRHD: handling fault status reg 2",
		"DMAR: [DMA Write NO_PASID] Request device [00:03.0] fault addr 0xdead000",
		"kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
		"unreferenced object 0xffff888003f5a000 (size 64):",
		"ODEBUG: free active (active state 0) object type: work_struct",
		"refcount_t: underflow; use-after-free.",
		"list_del corruption. prev->next should be ffff, but was 0",
		"irq 24: nobody cared (try booting with the \"irqpoll\" option)",
		"test: page allocation failure: order:4, mode:0xdc0(GFP_KERNEL), nodemask=(null)",
		"usercopy: Kernel memory exposure attempt detected from SLUB object",
		"watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [test:77]",
	} {
		for _, stamp := range []string{"", "[   12.345678] ", "[   12.345678][  T123] ", "<4>[    0.000001][    C1] "} {
			reports := scan(t, stamp+line+"\r\n")
			require.Len(t, reports, 1, stamp+line)
			require.Equal(t, []string{stamp + line}, reports[0].Lines)
			require.Contains(t, reports[0].String(), line)
		}
	}
}

func TestHarmlessLines(t *testing.T) {
	for _, line := range []string{
		"DMA-API: preallocated 65536 debug entries",
		"DMA-API: debugging enabled by kernel config",
		"nfcomms 0000:00:03.0: a BUG: that a driver speaks of",
		"Command line: console=ttyS0 oops=panic WARNING: x",
		"rcu: Hierarchical RCU implementation.",
		"kmemleak: Kernel memory leak detector initialized (mem pool available: 15876)",
		"Lockdep is clean: no WARNING: here",
		"",
	} {
		require.Empty(t, scan(t, "[    1.000000] "+line), line)
	}
}

func TestAttribution(t *testing.T) {
	log := `[    1.0] BUG: before all
[    1.1] vmtest: begin kdev
[    1.2] WARNING: CPU: 0 PID: 1 at x.c:1 x+0x1/0x2
[    1.3] Call Trace:
[    1.4] BUG: of the same trace
[    1.5] ---[ end trace 0000000000000000 ]---
[    1.6] BUG: another
[    1.7] vmtest: end kdev
[    1.8] after it
[    1.9] vmtest: begin next
[    2.0] WARNING: CPU: 0 PID: 1 at y.c:1 y+0x1/0x2
`
	reports := scan(t, log)
	require.Len(t, reports, 4)
	require.Equal(t, "", reports[0].During)
	require.Equal(t, "kdev", reports[1].During)
	require.Len(t, reports[1].Lines, 4)
	require.Equal(t, "kdev", reports[2].During)
	require.Len(t, reports[2].Lines, 1)
	require.Equal(t, "next", reports[3].During)
	require.Contains(t, reports[3].String(), "during next")
}

func TestReportsAreBounded(t *testing.T) {
	reports := scan(t, "BUG: first\n"+strings.Repeat("a line\n", 3*maxReport)+"BUG: second\n")
	require.Len(t, reports, 2)
	require.Len(t, reports[0].Lines, maxReport)
}

func TestAllowed(t *testing.T) {
	log := "[ 1.0] DMAR: [DMA Write] Request device [00:03.0] fault addr 0xdead000\n[ 1.1] BUG: other\n"
	reports := scan(t, log, `^DMAR: .* fault addr 0xdead`)
	require.Len(t, reports, 1)
	require.Contains(t, reports[0].Lines[0], "other")
	log = `[ 1.0] WARNING: CPU: 0 PID: 1 at x.c:1 theirs+0x1/0x2
[ 1.1] Modules linked in: nfcomms(O)
[ 1.2] ---[ end trace 0000000000000000 ]---
[ 1.3] WARNING: CPU: 0 PID: 1 at x.c:1 ours+0x1/0x2
`
	reports = scan(t, log, `^WARNING: .* theirs\+`)
	require.Len(t, reports, 1)
	require.Contains(t, reports[0].Lines[0], "ours")
	_, err := NewScanner("(")
	require.ErrorContains(t, err, "allowed kernel message")
}

//go:build linux

package main

import (
	"cmp"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// Groups of the jobs with seeded defects; some are part of every debug run.
const (
	inDefects = "defect"
	inDebug   = "defect debug"
	inRaces   = "races" // has a kernel of its own
)

// defect is one mistake in the module, a patch of its name below defects, and
// what must notice it.
type defect struct {
	name   string
	about  string
	group  string
	kernel string
	iommu  bool
	ports  bool     // errors of the bus can be injected
	leaks  bool     // look for leaked memory
	binary string   // a C program
	args   []string // of it
	script string   // of the device
	pages  bool     // the device knows no runs, so that a transfer takes many lists
	params string   // of the module
	wants  string   // what the run must say
	patch  string   // it is another one's, which this test must notice as well; "": its own
}

// defects are mistakes that somebody could make. Each must make a run fail.
var defects = []defect{
	{
		name: "leaked-pin", about: "pages stay pinned where a later one cannot be", group: inDebug, kernel: "release",
		binary: "memory", args: []string{"-n", "holes"}, wants: `pinned\(\) == 0|pages still pinned`,
	},
	{
		name: "unpin-before-quiesce", about: "an aborted transfer's pages are let go before the device agrees", group: inDefects, kernel: "release",
		binary: "quiesce", script: neverAborted, params: loaded, wants: `aborted == KILLS`,
	},
	{
		name: "pages-back-early", about: "an eager transfer's pages are let go before the device answers", group: inDefects, kernel: "release",
		binary: "kept", script: neverWithdrawn, params: loaded, wants: `pinned\(\) > 0`,
	},
	{
		name: "free-before-fence", about: "an epoch's pages are let go before DMA is fenced", group: inDefects, kernel: "release", iommu: true, pages: true,
		binary: "cycle", args: []string{"-n", "reset_under_load", "20"}, wants: `accesses to memory that was not mapped`,
	},
	{
		name: "no-count-check", about: "the count of bytes in DONE is believed", group: inDefects, kernel: "release", iommu: true,
		binary: "hostile", args: []string{"20"}, script: "early@2+2", wants: `log_says\(what\)`,
	},
	{
		name: "seventh-entry", about: "a gather list gets a seventh entry", group: inDebug, kernel: "debug", pages: true,
		binary: "memory", args: []string{"-n", "any_start_and_length"}, wants: `UBSAN: array-index-out-of-bounds`,
	},
	{
		name: "run-past-mapping", about: "an entry goes on past the end of its mapping", group: inDefects, kernel: "release",
		binary: "runs", args: []string{"-n", "any_mixture"}, wants: `!memcmp\(from, to, size\)`,
	},
	{
		name: "sleep-in-interrupt", about: "the interrupt handler takes a mutex", group: inDebug, kernel: "debug",
		binary: "validate", args: []string{"-n", "reads"}, wants: `sleeping function called from invalid context`,
	},
	{
		name: "no-unmap", about: "pages are let go and stay mapped for DMA", group: inDefects, kernel: "debug",
		binary: "memory", args: []string{"-n", "any_start_and_length"}, wants: `DMA-API: .*(pending DMA allocations|exceeded|overlapping)`,
	},
	{
		name: "use-after-free", about: "a completion is copied after its operation was freed", group: inDebug, kernel: "debug",
		binary: "validate", args: []string{"-n", "reads"}, wants: `KASAN: use-after-free`,
	},
	{
		name: "lost-wakeup", about: "the ring is not drained again after the park word was set", group: inDefects, kernel: "release",
		binary: "silent", args: []string{"-n", "the_call"}, script: neverInterrupts, wants: `found > 0`,
	},
	{
		name: "no-park-word", about: "the device is not told that somebody sleeps", group: inDefects, kernel: "release",
		binary: "wake", wants: `late < ROUNDS / 2`,
	},
	{
		name: "no-epoch-check", about: "messages of another epoch count", group: inDefects, kernel: "release", iommu: true,
		binary: "hostile", args: []string{"10"}, script: "epoch@2+5", wants: `unsuccessful >= \(uint64_t\)rounds / 2`,
	},
	{
		name: "no-reserved-check", about: "reserved fields of an operation may be anything", group: inDefects, kernel: "release",
		binary: "opcodes", args: []string{"-n", "what_they_do_not_take"}, wants: `SUBSCRIBE: reserved`,
	},
	{
		name: "double-completion", about: "a delivered message completes twice", group: inDefects, kernel: "debug",
		binary: "validate", args: []string{"-n", "reads"}, wants: `list_debug\.c|KASAN`,
	},
	{
		name: "memlock-kept", about: "pinned memory is never given back to its limit", group: inDefects, kernel: "release",
		binary: "memory", args: []string{"-n", "over_the_memlock_limit"}, wants: `info.memlock_used == 0`,
	},
	{
		name: "reset-for-all", about: "anybody may reset the device", group: inDefects, kernel: "release",
		binary: "validate", args: []string{"-n", "reset_needs_privilege"}, wants: `reset_as_nobody`,
	},
	{
		name: "no-unpin-on-error", about: "pages stay pinned where they cannot be mapped", group: inDefects, kernel: "debug",
		binary: "failnth", wants: `pinned\(\) == 0|pages still pinned`,
	},
	{
		name: "import-attached-anew", about: "each import of a dma-buf is attached and mapped for itself", group: inDefects, kernel: "debug",
		binary: "dmabuf", args: []string{"-n", "one_attachment"}, wants: `exceeded 7 overlapping mappings`,
	},
	{
		name: "line-not-counted", about: "a client may have a line of a cache mapped more often than DMA debugging can count", group: inDefects, kernel: "debug",
		binary: "lines", args: []string{"-n", "many_regions"}, wants: `exceeded 7 overlapping mappings`,
	},
	{
		name: "leaked-memory", about: "the list of pages is never freed", group: inDefects, kernel: "debug", leaks: true,
		binary: "memory", args: []string{"-n", "any_start_and_length"}, wants: `unreferenced object`,
	},
	{
		name: "lock-order", about: "two locks are taken in both orders", group: inDefects, kernel: "debug",
		binary: "cycle", args: []string{"-n", "a_file_whose_device_went"}, wants: `possible circular locking dependency`,
	},
	{
		name: "counts-without-order", about: "threads add to the device's counters without an order", group: inRaces, kernel: "kcsan",
		binary: "fuzz", args: []string{"6000"}, params: slow, wants: `BUG: KCSAN: data-race in`,
	},
	// Between epochs and between clients.
	{
		name: "two-epochs", about: "a RESET boots a function that the bus is resetting", group: inDefects, kernel: "release",
		binary: "between", args: []string{"-n", "resets_of"}, wants: `busy > 0`,
	},
	{
		name: "own-pages-first", about: "a caller pins its own pages before it starts those of others", group: inDefects, kernel: "release", pages: true,
		binary: "silent", args: []string{"-n", "a_call_that_stalls"}, script: neverInterrupts, params: loaded, wants: `a completion came`,
	},
	{
		name: "one-queue-for-all", about: "control requests are served in the order in which they came", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "requests_of"}, wants: `left > 0`,
	},
	{
		name: "stop-after-all", about: "a process is stopped once more only when nobody else has a request", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "files_end_beside"}, wants: `prompt > CLOSES / 2`,
	},
	{
		name: "unfair", about: "the same, as what another file's requests take", group: inDefects, kernel: "release", patch: "one-queue-for-all",
		binary: "fair", args: []string{"-n", "beside_others", "5"}, wants: `took\[ABUSES\] <= MOST`,
	},
	{
		name: "polls-in-interrupt", about: "the thread of an interrupt wakes all that poll a file, however many", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "no_interrupt_goes_on"}, wants: `woken == 0: got`,
	},
	{
		name: "load-for-all", about: "anybody may bring in code", group: inDefects, kernel: "release",
		binary: "rights", wants: `try_as_nobody`,
	},
	{
		name: "read-only-acts", about: "a file that is open to read only may send and start", group: inDefects, kernel: "release",
		binary: "rights", args: []string{"-n", "to_read_only"}, wants: `try_as_nobody`,
	},
	{
		name: "close-waits", about: "who closes a file waits for a device that does not answer", group: inDefects, kernel: "release",
		binary: "quiesce", args: []string{"-n", "a_close"}, script: neverAborted, params: loaded, wants: `state\(other\) == NFCOMMS_STATE_READY`,
	},
	{
		name: "settings-not-kept", about: "config space is restored to what the kernel saved last", group: inDefects, kernel: "debug", ports: true,
		binary: "errors", args: []string{"-n", "behind_the_link"}, wants: `reset\(fd, shape\) == 0`,
	},
	{
		name: "no-recovery", about: "a device that may recover stays lost", group: inDefects, kernel: "release",
		binary: "recover", script: hangs, params: "heartbeat_timeout_ms=1000", wants: `recover_test\.c|a_lost_device`,
	},
	{
		name: "workers-for-all", about: "one user's stalled transfers have all workers", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "transfers_that_stall"}, wants: `a completion came`,
	},
	{
		name: "worker-not-fetched", about: "a worker waits for a page of an operation that has ended", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "a_worker_leaves"}, wants: `a completion came`,
	},
	{
		name: "file-left-waiting", about: "a file that ends stays in its user's list of files that wait for a worker", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "files_that_wait"}, wants: `list_debug\.c|nfcm_assert_left|BUG: `,
	},
	{
		name: "ended-still-queued", about: "an operation that ends before a thread queues it, which comes late, waits for a worker", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "files_that_wait"}, wants: `a completion came`,
	},
	{
		name: "given-not-taken-back", about: "an operation that ends waits for one of the driver's threads, all of which are busy", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "waits_for_a_thread"}, wants: `a completion came`,
	},
	{
		name: "no-wait-for-own-pins", about: "a transfer fails that could wait for its process's other one", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "two_transfers"}, wants: `c\.status == NFC_OK`,
	},
	{
		name: "put-back-in-silence", about: "a completion that a read puts back wakes nobody", group: inDefects, kernel: "release",
		binary: "between", args: []string{"-n", "was_put_back"}, wants: `the second read returns`,
	},
	{
		name: "end-before-put-back", about: "a file ends before the completion that a read puts back", group: inDefects, kernel: "release",
		binary: "between", args: []string{"-n", "when_the_device_went"}, wants: `b->second\.n == sizeof`,
	},
	{
		name: "drained-at-a-stretch", about: "a whole ring is drained without letting go of its lock", group: inDefects, kernel: "release",
		binary: "silent", args: []string{"-n", "a_ring_is"}, script: neverInterrupts, params: loaded, wants: `longest_row\(\) <= BATCH`,
	},
	{
		name: "head-before-copy", about: "a slot is given back before it is copied", group: inDefects, kernel: "release",
		binary: "silent", args: []string{"-n", "a_full_ring"}, script: neverInterrupts, params: loaded, wants: `silent_test\.c`,
	},
	{
		name: "master-left-on", about: "a device that could not boot may do DMA", group: inDefects, kernel: "release",
		binary: "between", args: []string{"-n", "a_boot_that_fails"}, wants: `!is_master\(\)`,
	},
	{
		name: "master-before-reset", about: "a device may do DMA before a reset has ended that of the epoch before", group: inDefects, kernel: "release",
		binary: "stale", args: []string{"-n", "before_a_reset"}, script: writesLate, wants: `written\(p\) == 0`,
	},
	{
		name: "begun-without-answer", about: "a submission that cannot tell what it took takes some", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "a_submission"}, wants: `NFCOMMS_IOC_SUBMIT, s\) == EFAULT`,
	},
	{
		name: "region-after-unmap", about: "a region outlives the memory that it stands for", group: inDefects, kernel: "release",
		binary: "region", args: []string{"-n", "unmapped"}, wants: `regions\(fd\) == 0`,
	},
	{
		name: "region-at-one-go", about: "who gives a large region back keeps the processor until it is done", group: inDefects, kernel: "release",
		binary: "region", args: []string{"-n", "a_large_one"}, wants: `seen > 0`,
	},
	{
		name: "revoked-at-one-go", about: "a removal keeps the processor until all regions of a file are revoked", group: inDefects, kernel: "release",
		binary: "revoke", args: []string{"-n", "an_unbind"}, wants: `revoke_test\.c.*seen > 0`,
	},
	{
		name: "interrupt-waits-for-page", about: "a page is locked in the thread of an interrupt", group: inDefects, kernel: "release",
		binary: "clients", args: []string{"-n", "no_interrupt_waits"}, wants: `irq/`,
	},
	{
		name: "holdoff-not-told", about: "the device never learns what a vector's moderation adapted to", group: inDefects, kernel: "release",
		binary: "moder", args: []string{"-n", "the_holdoff"}, wants: `moder_test\.c`,
	},
	{
		name: "busy-without-end", about: "a wait polls for as long as nobody else needs its processor", group: inDefects, kernel: "release",
		binary: "busy", args: []string{"-n", "a_budget"}, wants: `took < STUCK_MS`,
	},
}

// defectTimeout bounds one run: with a defect a program may hang.
const defectTimeout = 4 * time.Minute

// job returns the run that must notice a defect.
func (d defect) job() job {
	p := programs[d.binary].built(d.binary)
	p.args, p.timeout = d.args, defectTimeout/2
	programs["defect-"+d.name] = p
	j := job{
		name: "defect-" + d.name, group: d.group, about: d.about, kernel: d.kernel,
		machine: vm.Machine{IOMMU: d.iommu, Ports: d.ports}, device: []string{}, kmemleak: d.leaks,
		params: d.params, programs: []string{"defect-" + d.name}, limit: defectTimeout, defect: cmp.Or(d.patch, d.name), wants: d.wants,
	}
	if d.kernel == "debug" {
		j.params = slow
		j.allow = injected
	}
	if d.pages {
		j.device = []string{"--runs=0"}
	}
	if d.script != "" {
		j.nodes = lies(d.script)
		j.programs = on("defect-"+d.name, j.nodes)
	}
	return j
}

func init() {
	for _, d := range defects {
		jobs = append(jobs, d.job())
	}
}

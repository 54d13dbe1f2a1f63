//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// kind is how a program is built and how its output is read.
type kind int

const (
	goTest  kind = iota // a Go test binary
	goMain              // a Go command; its exit status is one test
	cTest               // a C program with firmware/test/harness.h
	cMain               // any other C program; its exit status is one test
	rawFile             // a file that is there already, for vmtest exec
)

// program is something that a guest can run.
type program struct {
	name    string
	binary  string // what it is built as; "": the name
	kind    kind
	source  []string // Go: the package's folder; C: what gcc takes; rawFile: the file
	args    []string
	env     []string
	timeout time.Duration // 0: programTimeout
}

// Limits of time that a loaded machine does not reach.
const (
	programTimeout = 15 * time.Minute
	bootTimeout    = 3 * time.Minute
	jobTimeout     = time.Hour
)

// job is one boot of one machine.
type job struct {
	name     string
	group    string // "test" and "debug" are what the make targets run
	about    string
	kernel   string     // one of kernelNames
	machine  vm.Machine // without QEMU, Kernel, Initrd and Devices
	counts   []workload // of which the register accesses are counted; nil: of nothing
	device   []string   // arguments of nfsim besides the socket; nil: no device, no module
	nodes    []node     // its devices; none: one as device says
	count    int        // the last argument of every program, if it is not 0
	params   string     // of the module
	programs []string   // names in programs; NAME@NODE runs it with another device than the first
	allow    []string   // expressions for kernel messages that the job provokes
	files    []item     // more files for the guest
	kmemleak bool
	aloud    bool          // what its programs write goes to stderr as well
	udev     bool          // it is there, with our rule, and loads the module
	vfio     bool          // the kernel's own modules of VFIO are loaded, and ours is not
	banner   string        // of an interactive shell, which takes the place of the programs
	limit    time.Duration // for everything; 0: jobTimeout
	defect   string        // seeded in the module: a patch of defects, without its ending
	wants    string        // the run must fail, and say what this expression matches
}

// node is one of several devices of a machine. The driver numbers those that it knows in their
// order; strangers come last.
type node struct {
	name   string   // what programs say after @; "": that of the script
	args   []string // of nfsim, after the job's
	script string   // how it breaks the rules; "": not at all
}

// lies returns a node for each script.
func lies(scripts ...string) []node {
	var all []node
	for _, s := range scripts {
		all = append(all, node{name: s, script: s})
	}
	return all
}

// with returns the nodes with one more argument of nfsim each.
func with(nodes []node, arg string) []node {
	for i := range nodes {
		nodes[i].args = append(nodes[i].args, arg)
	}
	return nodes
}

// on returns the program's name for each node of a list.
func on(program string, nodes []node) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, program+"@"+n.name)
	}
	return all
}

// named returns the program with its name.
func (p program) named(name string) program {
	p.name = name
	return p
}

// built returns the program with what it is built as.
func (p program) built(binary string) program {
	p.binary = binary
	return p
}

// with returns the program as it runs with the i-th device.
func (p program) with(i int, n node) program {
	p.binary = cmp.Or(p.binary, p.name)
	p.name += "-" + strings.NewReplacer(":", "-", "@", "-", "+", "-", ",", "-").Replace(n.name)
	p.env = append(slices.Clone(p.env), deviceEnv(i, n.script)...)
	p.args = slices.Clone(p.args)
	for k, a := range p.args {
		if a == "dev:0" {
			p.args[k] = fmt.Sprintf("dev:%d", i)
		}
	}
	return p
}

// list returns the programs of the job. A name of no program or node is a defect of the tables.
func (j job) list() []program {
	var all []program
	for _, entry := range j.programs {
		name, at, elsewhere := strings.Cut(entry, "@")
		p := programs[name].named(name)
		if j.count > 0 {
			p.args = append(slices.Clone(p.args), strconv.Itoa(j.count))
			p.timeout = cmp.Or(p.timeout, j.limit)
		}
		if elsewhere {
			i := slices.IndexFunc(j.nodes, func(n node) bool { return n.name == at })
			p = p.with(i, j.nodes[i])
		}
		if j.params != "" {
			p.env = append(slices.Clone(p.env), "NFC_PARAMS="+j.params)
		}
		all = append(all, p)
	}
	return all
}

// libSources are what libnfcomms is made of.
var libSources = []string{"-D_GNU_SOURCE", "kmod/lib/device.c", "kmod/lib/control.c", "kmod/lib/channel.c", "kmod/lib/async.c", "kmod/lib/region.c", "kmod/lib/umod.c"}

// programs are those that jobs name. Each is in the guest as /bin/NAME.
var programs = map[string]program{
	"selftest": {kind: goTest, source: []string{"./internal/vmtest/selftest"}},
	"kdev":     {kind: goTest, source: []string{"./internal/kdev"}, args: kdevArgs, env: []string{"NFC_KDEV=dev:0,dev:1"}, timeout: 20 * time.Minute},
	"far":      {kind: goTest, source: []string{"./internal/kdev"}, args: []string{"-test.run=^TestFarMemory$", "-dmabuf"}, env: []string{"NFC_KDEV=dev:0"}},
	"vfio":     {kind: goTest, source: []string{"./internal/vmtest/functions"}, args: vfioArgs, timeout: 20 * time.Minute},
	"vfio-all": {kind: goTest, source: []string{"./internal/vmtest/functions"}, args: kdevArgs[:3], timeout: 20 * time.Minute},
	"bulk":     {kind: goMain, source: []string{"./apps/bulk"}, args: []string{"--address", "dev:0", "/bin"}},
	"nfbench":  {kind: goMain, source: []string{"./bench/nfbench"}, args: []string{"latency", "--address", "dev:0", "--batches", "100"}},
	"lib":      {kind: cTest, source: append([]string{"kmod/lib/test/guest_test.c", "firmware/test/harness.c"}, libSources...)},
	"echo":     {kind: cMain, source: append([]string{"kmod/lib/example/echo.c", "-Ikmod/lib"}, libSources...), args: []string{"dev:0"}},
	"validate": clientTest("validate"),
	"opcodes":  clientTest("opcodes"),
	"rights":   clientTest("rights"),
	"access":   clientTest("access"),
	"memory":   clientTest("memory"),
	"runs":     clientTest("runs"),
	"eager":    clientTest("eager"),
	"region":   clientTest("region"),
	"revoke":   clientTest("revoke"),
	"lines":    clientTest("lines"),
	"dmabuf":   clientTest("dmabuf"),
	"kept":     clientTest("kept"),
	"signal":   clientTest("signal", "2000"),
	"exits":    clientTest("exits"),
	"cycle":    clientTest("cycle"),
	"chaos":    clientTest("chaos"),
	"pairs":    clientTest("pairs"),
	"fair":     clientTest("fair"),
	"fuzz":     clientTest("fuzz"),
	"failnth":  clientTest("failnth"),
	"wake":     clientTest("wake"),
	"moder":    clientTest("moder"),
	"busy":     clientTest("busy"),
	"silent":   clientTest("silent"),
	"probe":    clientTest("probe"),
	"show":     clientTest("show"),
	"hostile":  clientTest("hostile"),
	"quiesce":  clientTest("quiesce"),
	"lost":     clientTest("lost"),
	"stale":    clientTest("stale"),
	"unknown":  clientTest("unknown"),
	"errors":   clientTest("errors"),
	"beside":   clientTest("beside"),
	"stall":    clientTest("stall"),
	"udev":     clientTest("udev"),
	"eventfd":  clientTest("eventfd"),
	"between":  clientTest("between"),
	"clients":  clientTest("clients"),
	"recover":  clientTest("recover"),
	"computes": clientTest("computes"),
	"first":    {kind: cTest, source: []string{"internal/vmtest/c/first/first_test.c", "firmware/test/harness.c"}},
	"refused":  {kind: cTest, source: []string{"internal/vmtest/c/interface2/refused_test.c", "firmware/test/harness.c"}},
	// An emulated IOMMU takes a tenth of a second to map a few MiB.
	"region-some": withArgs("region", "6"),

	// Hashing is what takes time in bulk: devices of other shapes, and other kernels, move one file.
	"bulk-some": {kind: goMain, binary: "bulk", source: []string{"./apps/bulk"}, args: []string{"--address", "dev:0", "/init"}},
}

// kdevArgs leave out what is the same with any module: rules about the Go side's own cost; and what is
// large: core_test has the wrap of list numbers, and huge transfers and the crowd of blocked senders run
// on dev: over the fake module. Counts are those that an emulated machine can do.
var kdevArgs = []string{
	"-test.short", "-test.skip", "^TestConformance/stats/(allocations|profile)$|^TestConformance/crowd/10000-blocked-senders$", "-faults=400", "-calls=3000",
}

// vfioArgs leave out the rules in which a function that VFIO gives is the one of "vfio-user:", whose
// suite runs on any host: the mailbox's own, and those that take their time by counts.
var vfioArgs = []string{
	"-test.short", "-test.skip", "^TestConformance$/^(stats|ledger|try|call|crowd)$|^TestConformance$/^direct$/^(order|senders-in-turn|ring-wraps)$|^TestConformance$/^transfer$/^64MiB$",
}

// clientTest is a C program of internal/vmtest/c, which talks to /dev/nfcomms0 by
// bare ioctls.
func clientTest(name string, args ...string) program {
	const c = "internal/vmtest/c/"
	source := []string{c + name + "_test.c", c + "rig.c", c + "bus.c", c + "crew.c", c + "lazy.c", c + "region.c", "firmware/test/harness.c", "-pthread"}
	if name == "region" {
		source = append(source, c+"region_owner_test.c")
	}
	return program{kind: cTest, source: source, args: args}
}

// loaded is the module's parameter for a machine that is not ours alone: a heart
// that beats late there has not stopped.
const loaded = "heartbeat_timeout_ms=5000"

// rareHeartbeats is loaded for what waits for five heartbeats: by default that is half a second, and the
// device is lost after a second.
const rareHeartbeats = "--beat=500ms"

// neverAborted is the script of a device that does not answer an abort.
const neverAborted = "drop+1:aborted"

// neverWithdrawn is the script of a device that keeps what is taken back.
const neverWithdrawn = "drop+1:withdrawn"

// hangs is the script of a device that stops again and again, each time until it is reset.
const hangs = "hang@30+30"

// neverInterrupts is the script of a device whose interrupts are all lost.
const neverInterrupts = "irq-drop+1"

// writesLate is the script of a device that continues with DMA when a RESET begins.
const writesLate = "stale+1"

// hostile are devices that break the rules in each way that a run of make vm-test can afford.
var hostile = lies("random+7", "count+5", "replay+5", "flip@20", "overreach+3", "wild+3", "irq-drop+3", "ahead@20+7", "rewrite+5", "hang@30", "gone@30", "fake-removal@30", "die@30")

// losing are devices that send heartbeats, but lose a message. They know no runs: how many lists a
// transfer has must not depend on the memory that its buffer got.
var losing = with(lies("lose@2:direct", "drop:ack", "lose@2:begin", "drop@2:ack", "lose@2:list", "lose@8:list", "drop:done", "lose@9:list", "drop@2:done"), "--runs=0")

// every are devices of each shape that a driver must know, and everything what runs with them.
var (
	every = []node{
		{name: "plain"}, {name: "second"}, {name: "one-vector", args: []string{"--vectors=1"}}, {name: "posted", args: []string{"--no-mmap"}}, {name: "pages", args: []string{"--host-rings=0", "--runs=0", "--eager=0"}},
		{name: "silent", args: []string{"--runs=0"}, script: neverInterrupts}, // its transfers take many lists
		{name: "other-registers", args: []string{"--pci-version=2.0"}}, {name: "other-abi", args: []string{"--abi-version=9.1"}},
	}
	everything = []string{
		"selftest", "first", "refused", "validate", "opcodes", "rights", "access", "memory", "runs", "runs@pages", "eager", "eager@pages", "validate@pages", "region", "revoke", "signal", "exits", "lib", "echo", "show", "wake", "moder", "busy", "kdev", "bulk",
		"exits-killed@one-vector", "bulk-some@one-vector", "validate@posted", "bulk-some@posted", "silent@silent",
		"clients", "between", "unknown", "eventfd",
	}
)

// jobs are what "vmtest run" knows, in the order it runs them. A machine takes seconds to boot and
// runs all that fits its shape.
var jobs = []job{
	{
		name: "release", group: "test", about: "the harness, every ioctl, memory, signals and death of clients, the contract of a back end; then one interrupt for everything, a mailbox BAR that cannot be mapped, devices of another version",
		kernel: "release", device: []string{}, params: loaded, nodes: every, programs: everything,
	},
	{
		name: "iommu", group: "test", about: "an IOMMU between the device and memory, and devices that break the rules",
		kernel: "release", machine: vm.Machine{IOMMU: true, Memory: 1024}, device: []string{}, params: loaded,
		nodes:    append([]node{{name: "plain"}}, hostile...),
		programs: append([]string{"memory", "runs", "eager", "region-some", "exits-killed", "bulk-some"}, on("hostile", hostile)...),
	},
	{
		name: "vfio", group: "test", about: "functions that a process drives by VFIO, behind an IOMMU, and one that breaks the rules",
		kernel: "release", machine: vm.Machine{IOMMU: true, Memory: 1024}, device: []string{}, vfio: true,
		nodes: with([]node{{name: "first"}, {name: "second"}}, rareHeartbeats), programs: []string{"vfio"},
	},
	{
		name: "lost", group: "test", about: "devices that send heartbeats, but lose a message; one that never agrees to an abort, or to a withdrawal; one that hangs until it is reset; one that writes when a reset begins; one with a process that computes",
		kernel: "release", machine: vm.Machine{Memory: 1024}, device: []string{}, params: loaded,
		nodes:    append(append(lies(neverAborted, neverWithdrawn, hangs, writesLate), node{name: "lone", args: []string{"--lone=1"}}), losing...),
		programs: append([]string{"quiesce@" + neverAborted, "kept@" + neverWithdrawn, "recover@" + hangs, "stale@" + writesLate, "computes@lone"}, on("lost", losing)...),
	},
	{
		name: "cycle", group: "test", about: "removal, unbinding, unloading, suspending under load",
		kernel: "release", device: []string{}, params: loaded, programs: []string{"cycle", "chaos", "pairs-one"},
	},
	{
		name: "udev", group: "test", about: "a card is found by its alias, and its node gets its group and its name",
		kernel: "release", device: []string{}, params: loaded, udev: true, programs: []string{"udev"},
	},
	{
		name: "backports", group: "test", about: "the current stable kernel",
		kernel: "backports", device: []string{}, params: loaded, programs: []string{"first", "refused", "validate", "memory", "region", "dmabuf", "far", "eventfd", "clients", "bulk-some"},
	},
	{
		name: "arm64", group: "arm64", about: "the same as release, and removal under load, on another processor",
		kernel: "arm64", device: []string{}, params: loaded, nodes: every, programs: append(slices.Clone(everything), "cycle", "pairs-one"),
	},
}

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// subject is a file in which the tool finds places.
type subject struct {
	file  string // from the top of the tree
	n     int    // places to take, by chance; those that weaken an order are all taken
	tests []tests
}

// of are programs of the C tests of the firmware, by the first part of their names.
func of(names string) (list []tests) {
	for name := range strings.FieldsSeq(names) {
		list = append(list, tests{"firmware/test", name + "_test"})
	}
	return list
}

// core are programs of the C tests, then the conversations of the device, then the other programs, and
// the first one again under sanitizers.
func core(names string) []tests {
	list := append(of(names), tests{"firmware/test", "talk"})
	for _, t := range of("direct d2h close transfer window list runs eager select ready control hosts pressure pair " +
		"pair_break guest guest_gone listen joint nonsense health load memory island assist dma service") {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return append(list, tests{"firmware/test", sanitized + list[0].run})
}

// inPackages are all tests of packages.
func inPackages(names ...string) (list []tests) {
	for _, name := range names {
		list = append(list, tests{name, "."})
	}
	return list
}

// moduleTests are the C tests of the module's core.
var moduleTests = []tests{{"kmod/test", "core_test"}, {"kmod/test", "list_test"}, {"kmod/test", "access_test"}, {"kmod/test", "talk"}}

// Go packages whose tests notice.
var (
	abiTests     = inPackages("bridge/abi")
	tableTests   = []tests{{"internal/proto", "TestTalk|TestHostRows|TestDeviceRows|TestLedger|TestSplit|TestRows|TestTable|TestLayout"}, {"internal/proto", "."}}
	mailboxTests = append(inPackages("bridge/mailbox"), tests{"internal/sim", "TestConformance$"})
	attachTests  = inPackages("cmd/nfsim/internal/hosts", "internal/shm")
	wireTests    = inPackages("internal/shmwire", "cmd/nfsim/internal/hosts")
	accessTests  = inPackages("pkg/control/access")
)

// orderTests hold each order of the firmware to its name in the table of the protocol. Many a processor
// does not need it, and notices no change.
var orderTests = []tests{{rules, "TestBarriersHavePartners|TestOrdersHaveNames"}}

// subjects are the files of the protocol and of the rights to it.
var subjects = []subject{
	{"bridge/abi/abi.go", 5, abiTests},
	{"bridge/abi/id.go", 2, abiTests},
	{"bridge/abi/diagnostic.go", 2, abiTests},
	{"internal/proto/classify.go", 5, tableTests},
	{"internal/proto/table.go", 3, tableTests},
	{"internal/proto/ledger.go", 4, tableTests},
	{"internal/proto/split.go", 3, tableTests},
	{"firmware/core/ring.c", 3, core("direct nonsense hosts pressure joint health span")},
	{"firmware/core/offer.c", 3, core("direct eager transfer close d2h runs select")},
	{"firmware/core/manager.c", 3, core("direct nonsense transfer control pressure close joint")},
	{"firmware/core/channel.c", 3, core("close direct d2h transfer eager select ready")},
	{"firmware/core/transfer.c", 3, core("transfer window d2h list runs nonsense eager")},
	{"firmware/core/dma.c", 3, core("dma transfer runs assist list")},
	{"firmware/core/half.c", 2, core("close d2h direct ready transfer")},
	{"firmware/core/note.c", 2, core("close ready d2h select nonsense")},
	{"firmware/core/host.c", 2, core("hosts control direct health")},
	{"firmware/core/registry.c", 2, core("control hosts load listen")},
	{"firmware/core/memory.c", 2, core("memory control load")},
	{"firmware/core/relay.c", 2, core("pair listen pair_break guest pressure span_guest")},
	{"firmware/core/forward.c", 2, core("pair pair_break guest guest_gone listen")},
	{"firmware/core/listen.c", 3, core("listen pair guest hosts joint")},
	{"firmware/core/move.c", 2, core("move")},
	{"firmware/core/joint.c", 2, core("joint pressure select span")},
	{"firmware/core/guest.c", 2, core("guest guest_gone span_guest")},
	{"firmware/core/island.c", 2, core("island assist direct control health")},
	{"firmware/core/process.c", 2, core("control load close service crash")},
	{"firmware/core/health.c", 2, core("health hosts")},
	{"firmware/core/calls.h", 0, nil},
	{"firmware/core/state.h", 0, nil},
	{"firmware/core/access.h", 0, nil},
	{"firmware/link/send.c", 3, of("link link_credit link_fault link_train share")},
	{"firmware/link/receive.c", 3, of("link link_fault link_credit link_train share")},
	{"firmware/link/link.c", 2, of("link link_train link_fault link_credit share")},
	{"firmware/link/frame.c", 2, of("link link_fault link_credit share")},
	{"firmware/link/align.c", 2, of("link_train link_fault link")},
	{"firmware/link/fifo.c", 2, of("link far link_credit span")},
	{"firmware/link/route.c", 2, of("route node")},
	{"firmware/link/node.c", 2, of("node rma far")},
	{"firmware/link/rma.c", 2, of("rma node")},
	{"firmware/link/far.c", 2, of("far")},
	{"firmware/link/far_rings.c", 2, of("far span span_break")},
	{"firmware/link/far_watch.c", 0, nil},
	{"firmware/link/far.h", 0, nil},
	{"firmware/link/span.c", 2, of("span span_break span_guest")},
	{"kmod/core/classify.c", 6, moduleTests},
	{"kmod/core/half.c", 3, moduleTests},
	{"kmod/core/ledger.c", 4, moduleTests},
	{"kmod/core/layout.c", 3, moduleTests},
	{"kmod/core/list.c", 2, moduleTests},
	{"kmod/core/access.c", 2, moduleTests},
	{"bridge/mailbox/direct.go", 3, mailboxTests},
	{"bridge/mailbox/dispatch.go", 3, mailboxTests},
	{"bridge/mailbox/mailbox.go", 3, mailboxTests},
	{"bridge/mailbox/receive.go", 3, mailboxTests},
	{"bridge/mailbox/transfer.go", 3, mailboxTests},
	{"bridge/mailbox/eager.go", 2, mailboxTests},
	{"bridge/mailbox/epoch.go", 2, mailboxTests},
	{"internal/shmwire/access.go", 2, wireTests},
	{"internal/shmwire/shmwire.go", 2, wireTests},
	{"cmd/nfsim/internal/hosts/access.go", 3, attachTests},
	{"cmd/nfsim/internal/hosts/users.go", 2, attachTests},
	{"pkg/control/access/account.go", 3, accessTests},
	{"pkg/control/access/authorizer.go", 3, accessTests},
	{"pkg/control/access/policy.go", 3, accessTests},
	{"pkg/control/access/role.go", 1, accessTests},
	{"pkg/control/access/methods.go", 1, accessTests},
	{"pkg/control/access/tls.go", 2, accessTests},
}

// found is a place that was taken, with its file and the tests.
type found struct {
	place
	subject
	hashed uint64
	rank   int // among those of its kind
}

// String names the file, the line and the change.
func (f found) String() string {
	return fmt.Sprintf("%s:%d: %s: %q for %q in %q", f.file, f.line, f.kind, f.after, f.before, f.code)
}

// take returns as many places as the subject has of each kind in turn, and all that weaken an order.
func (s subject) take(list []found) (taken []found) {
	byChance(list)
	kinds := map[string]int{}
	for i, f := range list {
		list[i].rank = kinds[f.kind]
		kinds[f.kind]++
	}
	slices.SortStableFunc(list, func(a, b found) int { return a.rank - b.rank })
	n := 0
	for _, f := range list {
		if f.kind != order {
			n++
		}
		if f.kind == order || n <= s.n {
			taken = append(taken, f)
		}
	}
	return taken
}

// byChance sorts places in an order that an edit of other lines does not change.
func byChance(list []found) {
	slices.SortFunc(list, func(a, b found) int { return cmp.Compare(a.hashed, b.hashed) })
}

// find takes places of each subject. They are in an order of chance that stays the same.
func find(root string) (all []found, err error) {
	for _, s := range subjects {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.file)))
		if err != nil {
			return nil, err
		}
		var list []found
		for _, p := range places(string(text), isC(s.file)) {
			list = append(list, found{p, s, p.hash(s.file), 0})
		}
		all = append(all, s.take(list)...)
	}
	byChance(all)
	return all, nil
}

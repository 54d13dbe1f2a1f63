package main

// equivalentError is the reason why a change alters nothing that a side can notice.
type equivalentError string

func (e equivalentError) Error() string { return string(e) }

// equivalents are places whose change alters nothing, by file, code and change.
var equivalents = []struct{ file, kind, before, code, why string }{
	{"internal/proto/table.go", bound, "1", "return t.steps[d&1][s%(stepKeep+1)][in%stepInputs]",
		"no stand is above stepKeep: the remainder spares a check of the index"},
	{"cmd/nfsim/internal/hosts/access.go", bound, "1", "b := make([]byte, shmwire.AccessSize+shmwire.AccessData+1)",
		"a byte more than the longest request shows one that is too long, and so do two"},
	{"bridge/mailbox/epoch.go", bound, "12", "const pageChannels = 1 << 12",
		"the size of a part of the table of channels is one of memory alone"},
	{"bridge/mailbox/transfer.go", bound, "1", "return uint64(max(notAtAll+1, time.Until(end)))",
		"a call that is late is bounded by 2 ns in place of 1"},
	{"firmware/core/manager.c", out, "half->waiter = NULL;", "half->waiter = NULL;",
		"the process clears it as it runs; until then a wake does nothing, as for the other channels of a select"},
	{"firmware/core/manager.c", turned, "||", "} else if (p->wait == NFC_WAIT_READ || p->wait == NFC_WAIT_READ_IND) {",
		"a process that is woken looks again, and refuses another kind by itself"},
	{"firmware/link/send.c", turned, "<", "return t << (tx->asks < 5 ? tx->asks : 5);", "5 questions or 5 at most are the same"},
	{"firmware/link/align.c", bound, "16", "if (l->state < NFC_LINK_TEST || !(w.lo >> 16 & 0xffff))", "no burst has a single word"},
	{"firmware/link/node.c", turned, "<", "if (at < due)", "of two equal times either is the first"},
	{"firmware/core/island.c", out, "r->called = CALLED_SPINS;", "r->called = CALLED_SPINS;",
		"an island that was rung spins a while before it sleeps again: only latency differs"},
	{"firmware/core/guest.c", turned, "&&", "if (c.relay->end[0].host && c.relay->listener == id)",
		"it chooses the island to ask, which looks again, under the same lock, whether a process waits there"},
	{"firmware/core/forward.c", out, "relay->until = 0;", "relay->until = 0;",
		"a process that is to stop does not wait again, and another one's relay begins with 0"},
}

// equivalent returns why a change alters nothing, or nothing.
func (f found) equivalent() string {
	for _, e := range equivalents {
		if e.file == f.file && e.kind == f.kind && e.before == f.before && e.code == f.code {
			return e.why
		}
	}
	return ""
}

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
	{"firmware/core/island.c", out, "r->called = CALLED_SPINS;", "r->called = CALLED_SPINS;",
		"an island that was rung spins a while before it sleeps again: only latency differs"},
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

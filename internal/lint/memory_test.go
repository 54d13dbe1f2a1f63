package lint

import (
	"fmt"
	"go/ast"
	"go/printer"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// takesMemory are the folders whose calls take memory of a caller, which may not be there: they copy
// it with internal/fault.
var takesMemory = []string{
	"internal/kdev", "internal/kdev/umod", "bridge/mailbox", "internal/mesh", "internal/nodes", "internal/shm", "internal/vfio", "pkg/nfcomms", "pkg/ring",
}

// ofOwn is a copy to or from a slot, or a name: a message.
var ofOwn = regexp.MustCompile(`\.Bytes\(\)\[|\.Payload\[|\.Name\[|\.Text\[|\.Driver\[|\bs\.buf\b`)

// ownCopies are functions whose copies are of memory that is there, or that may end a process: of a
// message, as Go itself copies it, of objects on the stack, and of what internal/fault calls.
var ownCopies = []string{
	"internal/kdev/channel.go Receive", "internal/kdev/channel.go TryReceive", "internal/kdev/call.go called", "bridge/mailbox/receive.go receive", // messages
	"internal/kdev/umod/file.go take",                                             // completions
	"internal/mesh/pump.go receive",                                               // bytes of a link
	"pkg/nfcomms/transfer.go sendObject", "pkg/nfcomms/transfer.go receiveObject", // objects on the stack
	"pkg/nfcomms/transfer.go trySendInd", "pkg/nfcomms/transfer.go tryReceiveInd", // likewise
	"pkg/nfcomms/typed.go sendInd", "pkg/nfcomms/typed.go receiveInd", // values
	"pkg/nfcomms/typed_try.go trySend", "pkg/nfcomms/typed_try.go tryReceive", // likewise
	"pkg/ring/writer.go fill", // under fault.Try
}

// cCopies are the files of the firmware that reach memory of hosts, and the copies there that are of
// the firmware's own: what they copy to, and from.
var cCopies = map[string][]string{
	"firmware/link/rma.c": {
		"to, from, size", // where no port gives a copy
		"r->packet, &head, sizeof(head)", "&head, word, sizeof(head)",
	},
	"firmware/port/hosted_calls.c": {"text + at, line, len"},
	"firmware/port/mesh_far.c":     nil,
	"firmware/port/mesh_rma.c":     {"n->rma, 0, sizeof(*n->rma)", "n->peers, 0, n->mesh->nodes * sizeof(*n->peers)"},
}

var cCopy = regexp.MustCompile(`mem(?:cpy|move|set)\(([^;]*)\);`)

// plainCopies lists copies of memory that may be a caller's by anything but a copy that can fail.
func plainCopies(f *file) (found []string) {
	if own, is := cCopies[f.path]; is {
		for _, m := range cCopy.FindAllStringSubmatch(f.text, -1) {
			if args := strings.Join(strings.Fields(m[1]), " "); !slices.Contains(own, args) {
				found = append(found, fmt.Sprintf("%s: copy of %q: memory of a host needs nfc_fault_copy()", f.path, args))
			}
		}
	}
	if f.ast == nil || f.isTest() || !slices.Contains(takesMemory, f.dir()) {
		return found
	}
	for _, d := range f.ast.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is || slices.Contains(ownCopies, f.path+" "+fn.Name.Name) {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is && isCopy(call) && !ofOwn.MatchString(source(f, call)) {
				found = append(found, fmt.Sprintf("%s: %s: memory of a caller needs internal/fault", f.fset.Position(call.Pos()), source(f, call)))
			}
			return true
		})
	}
	return found
}

// isCopy reports whether a call copies bytes.
func isCopy(call *ast.CallExpr) bool {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name == "copy"
	case *ast.SelectorExpr:
		of, is := fn.X.(*ast.Ident)
		return is && of.Name == "bytes" && fn.Sel.Name == "Clone"
	}
	return false
}

// source is the text of an expression.
func source(f *file, x ast.Expr) string {
	var b strings.Builder
	if printer.Fprint(&b, f.fset, x) != nil {
		return "?"
	}
	return b.String()
}

func TestCopiesOfCallersMemoryCanFail(t *testing.T) {
	for _, f := range tree(t, ".go", ".c") {
		report(t, plainCopies(f))
	}
}

func TestPlainCopiesFinds(t *testing.T) {
	for path, text := range map[string]string{
		"internal/shm/a.go":   "package shm\nfunc f(to, data []byte) { copy(to, data) }\n",
		"bridge/mailbox/a.go": "package mailbox\nfunc f(data []byte) []byte { return bytes.Clone(data) }\n",
	} {
		wantOne(t, plainCopies(parseGo(t, path, text)), "needs internal/fault")
	}
	if found := plainCopies(parseGo(t, "internal/shm/a.go", "package shm\nfunc f(m *M, name string) { copy(m.Name[:], name) }\n")); found != nil {
		t.Error(found)
	}
	c := &file{path: "firmware/link/rma.c", text: "\t__builtin_memcpy(r->packet, &head, sizeof(head));\n\t__builtin_memcpy(r->packet + 32,\n\t\top->data, size);\n"}
	wantOne(t, plainCopies(c), "op->data")
}

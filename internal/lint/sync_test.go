package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Orders that a statement can give to memory, by the columns of the table of
// docs/protocol.md.
const (
	release = 1 << iota
	acquire
	fence
)

var (
	syncPoint = regexp.MustCompile(`SYNC: ([a-z]+(?: [a-z]+)*(?:, [a-z]+(?: [a-z]+)*)*)`)
	syncName  = regexp.MustCompile(`\*SYNC: ([a-z ]+)\*`)
	syncRow   = regexp.MustCompile(`(?m)^\| ([a-z][a-z ]+) \|([^|\n]*)\|([^|\n]*)\|([^|\n]*)\|$`)
)

// cOrders are the operations that order memory in C, most telling first: a
// statement has the order of the first that it contains.
var cOrders = []struct {
	op    *regexp.Regexp
	order int
}{
	{regexp.MustCompile(`memory_order_relaxed`), 0},
	{regexp.MustCompile(`\batomic_thread_fence\(memory_order_seq_cst\)|\b(?:smp_)?mb\(\)`), release | acquire | fence},
	{regexp.MustCompile(`\batomic_\w+_explicit\([\s\S]*memory_order_release`), release},
	{regexp.MustCompile(`\batomic_\w+_explicit\([\s\S]*memory_order_acquire`), acquire},
	{regexp.MustCompile(`\batomic_(?:exchange|compare_exchange_\w+|fetch_\w+)\(`), release | acquire | fence},
	{regexp.MustCompile(`\batomic_store\(|\bwrite[lq]\(`), release},
	{regexp.MustCompile(`\batomic_load\(|\bread[lq]\(|\bdma_rmb\(\)|\bSYS_futex(_waitv)?\b`), acquire},
}

// goOrders are those in Go. Atomics of Go are sequentially consistent: a store
// is a full fence.
func goOrders(call *ast.CallExpr) int {
	name := ""
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		name = f.Sel.Name
	}
	switch {
	case strings.HasPrefix(name, "Load"):
		return acquire
	case strings.HasPrefix(name, "Store"):
		return release | fence
	}
	for _, rmw := range []string{"Or", "And", "Add", "Swap", "CompareAndSwap"} {
		if rest, is := strings.CutPrefix(name, rmw); is && (rest == "" || strings.HasPrefix(rest, "Uint") || strings.HasPrefix(rest, "Int")) {
			return release | acquire | fence
		}
	}
	return 0
}

// barrier is a statement that bears a name.
type barrier struct {
	file, function string
	line           int
	names          []string
	order          int // what the statement does; 0: it orders nothing
	from, to       int // the statement in a text of C
}

func (b barrier) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// barriers finds what a file names: a comment at the end of the line of an
// operation, or on the line above it.
func barriers(f *file) []barrier {
	switch {
	case !strings.Contains(f.text, "SYNC: "):
		return nil
	case f.ast != nil:
		return goBarriers(f)
	}
	return cBarriers(f)
}

func goBarriers(f *file) (all []barrier) {
	orders := make(map[int]int) // by line
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is {
			from, to := f.fset.Position(call.Pos()).Line, f.fset.Position(call.End()).Line
			for line := from; line <= to; line++ {
				orders[line] |= goOrders(call)
			}
		}
		return true
	})
	lines := strings.Split(f.text, "\n")
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			names := syncPoint.FindStringSubmatch(c.Text)
			if names == nil {
				continue
			}
			line := f.fset.Position(c.Pos()).Line
			if strings.HasPrefix(strings.TrimSpace(lines[line-1]), "//") { // it stands above
				line = f.fset.Position(group.End()).Line + 1
			}
			all = append(all, barrier{file: f.path, function: goFunctionAt(f, c.Pos()), line: line, names: strings.Split(names[1], ", "), order: orders[line]})
		}
	}
	return all
}

// goFunctionAt names the function around a place, a method with its type.
func goFunctionAt(f *file, at token.Pos) string {
	for _, d := range f.ast.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is || at < fn.Pos() || at > fn.End() {
			continue
		}
		if fn.Recv != nil {
			typ := fn.Recv.List[0].Type
			if star, is := typ.(*ast.StarExpr); is {
				typ = star.X
			}
			if id, is := typ.(*ast.Ident); is {
				return id.Name + "." + fn.Name.Name
			}
		}
		return fn.Name.Name
	}
	return ""
}

var (
	cComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cHead    = regexp.MustCompile(`(\w+)\(`)
)

func cBarriers(f *file) (all []barrier) {
	// Comments become blanks of their length, so that places stay.
	code := cComment.ReplaceAllStringFunc(f.text, blanks)
	for _, at := range cComment.FindAllStringIndex(f.text, -1) {
		names := syncPoint.FindStringSubmatch(f.text[at[0]:at[1]])
		if names == nil {
			continue
		}
		line := f.text[strings.LastIndexByte(f.text[:at[0]], '\n')+1 : at[0]]
		from := at[1]
		if strings.TrimSpace(line) != "" { // at the end of the statement, or within it
			end := strings.TrimRight(code[:at[0]], " \t\n;{}")
			from = strings.LastIndexAny(end, ";{}") + 1
		}
		b := barrier{file: f.path, function: cFunctionAt(code, at[0]), names: strings.Split(names[1], ", ")}
		b.line = 1 + strings.Count(f.text[:at[0]], "\n")
		b.from = len(code) - len(strings.TrimLeft(code[from:], " \t\n;{}"))
		statement, _, _ := strings.Cut(code[b.from:], ";")
		b.to = b.from + len(statement)
		for _, o := range cOrders {
			if o.op.MatchString(statement) {
				b.order = o.order
				break
			}
		}
		all = append(all, b)
	}
	return all
}

// cFunctionAt names the function around a place, by kernel style.
func cFunctionAt(code string, at int) string {
	open := strings.LastIndex(code[:at], "\n{\n")
	if open < 0 || strings.LastIndex(code[:at], "\n}\n") > open {
		return ""
	}
	head := code[max(0, strings.LastIndex(code[:open], "\n}\n"), strings.LastIndex(code[:open], ";\n"), strings.LastIndex(code[:open], "\n\n")):open]
	if m := cHead.FindStringSubmatch(head); m != nil {
		return m[1]
	}
	return ""
}

// lonely lists barriers without their partners. Each row of the table of
// docs/protocol.md names the functions that release, acquire and fence: all of
// them must hold a statement of that order with the row's name. A name has both
// ends, or two fences; what the protocol's text names stands in the table, on
// the host and in the firmware; and so does every barrier of the code but those
// of tests, which must order memory all the same.
func lonely(protocol *file, files []*file) (found []string) {
	said := make(map[string]int) // what "name file:function" does
	for _, f := range files {
		for _, b := range barriers(f) {
			if b.order == 0 {
				found = append(found, fmt.Sprintf("%v: SYNC: %s names a statement that orders nothing", b, strings.Join(b.names, ", ")))
			}
			for _, name := range b.names {
				key := name + " " + b.file + ":" + b.function
				// Of two in one function the weaker one counts.
				if before, twice := said[key]; twice {
					said[key] = before & b.order
				} else {
					said[key] = b.order
				}
			}
		}
	}
	rows := make(map[string]map[string]int) // by name: what each place must do
	for _, row := range syncRow.FindAllStringSubmatch(protocol.text, -1) {
		places := make(map[string]int)
		for i, order := range []int{release, acquire, fence} {
			for _, p := range pointer.FindAllStringSubmatch(row[2+i], -1) {
				places[p[1]+":"+p[2]] |= order
			}
		}
		if len(places) == 0 {
			continue // a row of another table
		}
		rows[row[1]] = places
		found = append(found, checkRow(protocol.path, row[1], places, said)...)
	}
	for _, m := range syncName.FindAllStringSubmatch(protocol.text, -1) {
		for _, side := range []string{"bridge/mailbox", "firmware"} {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(rows[m[1]])), func(p string) bool { return strings.HasPrefix(p, side+"/") }) {
				found = append(found, fmt.Sprintf("%s: SYNC: %s of the text has no place in %s", protocol.path, m[1], side))
			}
		}
	}
	return append(found, unlisted(protocol.path, rows, said)...)
}

// checkRow compares a row with the code.
func checkRow(doc, name string, places, said map[string]int) (found []string) {
	ends, fences := 0, 0
	for _, place := range slices.Sorted(maps.Keys(places)) {
		want := places[place]
		if has := said[name+" "+place]; has&want != want {
			found = append(found, fmt.Sprintf("%s: SYNC: %s: %s does not order memory so", doc, name, place))
		}
		ends |= want
		if want&fence != 0 {
			fences++
		}
	}
	if ends&(release|acquire) != release|acquire && fences < 2 {
		found = append(found, fmt.Sprintf("%s: SYNC: %s has one end only", doc, name))
	}
	return found
}

// unlisted lists barriers that the table lacks.
func unlisted(doc string, rows map[string]map[string]int, said map[string]int) (found []string) {
	for _, key := range slices.Sorted(maps.Keys(said)) {
		i := strings.LastIndexByte(key, ' ')
		name, place := key[:i], key[i+1:]
		if strings.HasPrefix(place, "internal/scripted/") || strings.Contains(place, "_test.go:") {
			continue
		}
		if _, listed := rows[name][place]; !listed {
			found = append(found, fmt.Sprintf("%s: SYNC: %s: %s is not in the table", doc, name, place))
		}
	}
	return found
}

// cOrdered are the accesses of C that give memory an order, but for those that only a compiler heeds.
var cOrdered = regexp.MustCompile(`memory_order_(?:acquire|release|acq_rel|seq_cst)`)

// nameless lists the orders of a file of C that bear no name.
func nameless(f *file) (found []string) {
	code := cComment.ReplaceAllStringFunc(f.text, blanks)
	all := cBarriers(f)
	for _, at := range cOrdered.FindAllStringIndex(code, -1) {
		named := slices.ContainsFunc(all, func(b barrier) bool { return b.from <= at[0] && at[0] < b.to })
		if !named && !strings.HasSuffix(code[:at[0]], "atomic_signal_fence(") {
			found = append(found, fmt.Sprintf("%s:%d: an order without a SYNC: name", f.path, 1+strings.Count(code[:at[0]], "\n")))
		}
	}
	return found
}

// TestOrdersHaveNames: core and link give memory no order but by a name of the table.
func TestOrdersHaveNames(t *testing.T) {
	for _, f := range tree(t, ".c", ".h") {
		if f.dir() == "firmware/core" || f.dir() == "firmware/link" {
			report(t, nameless(f))
		}
	}
	f := &file{path: "a.c", text: strings.Replace(devicePuts, " /* SYNC: slot */", "", 1)}
	if found := nameless(f); len(found) != 1 || !strings.HasPrefix(found[0], "a.c:5: ") {
		t.Errorf("found %q", found)
	}
}

func TestBarriersHavePartners(t *testing.T) {
	var files []*file
	for _, f := range tree(t, ".go", ".c", ".h") {
		if f.dir() != "internal/lint" {
			files = append(files, f)
		}
	}
	protocol, ring := fileOf(t, "docs/protocol.md"), fileOf(t, "docs/ring.md")
	both := &file{path: protocol.path, text: protocol.text + ring.text}
	report(t, lonely(both, files))
}

// The sources that TestLonelyFinds breaks, one thing at a time.
const (
	hostPuts = `package mailbox
func (b *box) put() {
	atomic.StoreUint64(&b.header, 1) // SYNC: slot
}
func (b *box) take() {
	// SYNC: slot
	h := atomic.LoadUint64(b.next)
	atomic.OrUint32(b.word, 1) // first; SYNC: bell
}
`
	devicePuts = `void nfc_put(struct slot *slot)
{
	int other = 1;
	atomic_store_explicit(&slot->header, other,
			      memory_order_release); /* SYNC: slot */
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: bell */
	if (atomic_load_explicit(&park, memory_order_relaxed))
		ring();
}

static int
load(struct slot *slot)
{
	/* SYNC: slot: acquire */
	return atomic_load_explicit(&slot->header, memory_order_acquire);
}
`
	bothPut = "*SYNC: slot* *SYNC: bell*\n\n" +
		"| slot | `bridge/mailbox/a.go:box.put` `firmware/a.c:nfc_put` | `firmware/a.c:load` `bridge/mailbox/a.go:box.take` | |\n" +
		"| bell | | | `bridge/mailbox/a.go:box.take` `firmware/a.c:nfc_put` |\n"
)

func TestLonelyFinds(t *testing.T) {
	check := func(doc, host, device string) []string {
		return lonely(&file{path: "docs/p.md", text: doc}, []*file{
			parseGo(t, "bridge/mailbox/a.go", host), {path: "firmware/a.c", text: device}})
	}
	report(t, check(bothPut, hostPuts, devicePuts))
	for _, c := range []struct{ from, to, finds string }{
		// An operation is gone, or weaker, and its name stands still.
		{"atomic.StoreUint64(&b.header, 1)", "b.header = 1", "orders nothing"},
		{"atomic.StoreUint64(&b.header, 1)", "_ = atomic.LoadUint64(&b.header)", "box.put does not"},
		{"h := atomic.LoadUint64(b.next)", "h := *b.next", "orders nothing"},
		{"atomic.OrUint32(b.word, 1)", "_ = atomic.LoadUint32(b.word)", "box.take does not"},
		{"memory_order_release", "memory_order_relaxed", "orders nothing"},
		{"memory_order_acquire", "memory_order_relaxed", "orders nothing"},
		{"atomic_thread_fence(memory_order_seq_cst)", "barrier()", "orders nothing"},
		{"atomic_thread_fence(memory_order_seq_cst);", "flush_nothing(1);", "orders nothing"},
		// It went with its name.
		{"	atomic.StoreUint64(&b.header, 1) // SYNC: slot\n", "", "box.put does not"},
		{"	atomic_thread_fence(memory_order_seq_cst); /* SYNC: bell */\n", "", "nfc_put does not"},
		{" // SYNC: slot\n}", "\n}", "box.put does not"},
		// It stands elsewhere than the table says, or not in the table.
		{"func (b *box) take()", "func (b *box) fetch()", "box.take"},
		{"load(struct", "unload(struct", "load"},
		{"`firmware/a.c:load` `bridge/mailbox/a.go:box.take`", "", "slot"},
		{"| bell | | | `bridge/mailbox/a.go:box.take` ", "| bell | | | ", "bell"},
		{"*SYNC: slot*", "*SYNC: gong*", "gong"},
	} {
		swap := func(s string) string { return strings.Replace(s, c.from, c.to, 1) }
		found := check(swap(bothPut), swap(hostPuts), swap(devicePuts))
		if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, c.finds) }) {
			t.Errorf("%q in place of %q: found %q, want %q", c.to, c.from, found, c.finds)
		}
	}
}

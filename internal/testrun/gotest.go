package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail
	FailedBuild string // the import path whose build failed a package
	Test        string
	Elapsed     float64 // seconds
	Output      string
}

// goPackage gathers what a package reported.
type goPackage struct {
	counts
	output map[string]*strings.Builder // by test; "" is the package's own
}

// goReader counts the tests of a go test -json stream.
type goReader struct {
	w        io.Writer
	allowed  skipList
	held     *ruleTable
	times    *times
	total    counts
	packages map[string]*goPackage
	builds   map[string]*strings.Builder // compiler output, by import path
}

func newGoReader(w io.Writer, allowed skipList, held *ruleTable, times *times) *goReader {
	return &goReader{
		w:        w,
		allowed:  allowed,
		held:     held,
		times:    times,
		packages: make(map[string]*goPackage),
		builds:   make(map[string]*strings.Builder),
	}
}

func (r *goReader) line(text string) {
	var e event
	if json.Unmarshal([]byte(text), &e) != nil || e.Action == "" {
		fmt.Fprintln(r.w, text) // what the go command says outside the stream
		return
	}
	switch {
	case e.Action == "build-output":
		gather(r.builds, e.ImportPath, e.Output)
	case e.Package == "":
	case e.Action == "output":
		gather(r.of(e.Package).output, e.Test, e.Output)
	case e.Test != "":
		r.test(e)
	default:
		r.finish(e)
	}
}

func (r *goReader) of(name string) *goPackage {
	p := r.packages[name]
	if p == nil {
		p = &goPackage{output: make(map[string]*strings.Builder)}
		r.packages[name] = p
	}
	return p
}

func gather(m map[string]*strings.Builder, key, text string) {
	b := m[key]
	if b == nil {
		b = new(strings.Builder)
		m[key] = b
	}
	b.WriteString(text)
}

// test takes the end of one test; what passed is forgotten.
func (r *goReader) test(e event) {
	p := r.of(e.Package)
	if !strings.Contains(e.Test, "/") {
		r.times.add("test", e.Package+" "+e.Test, seconds(e.Elapsed))
	}
	switch e.Action {
	case "pass":
		p.passed++
		r.held.pass(e.Package, e.Test)
		delete(p.output, e.Test)
	case "fail":
		p.failed++
		r.show(p, e.Package, e.Test)
	case "skip":
		if r.allowed.has(e.Package, e.Test) {
			p.skipped++
			delete(p.output, e.Test)
			return
		}
		p.failed++
		fmt.Fprintf(r.w, "FAIL %s %s: skipped, and no list allows it\n", e.Package, e.Test)
		r.show(p, e.Package, e.Test)
	}
}

// show prints what a test wrote.
func (r *goReader) show(p *goPackage, pkg, test string) {
	if b := p.output[test]; b != nil {
		fmt.Fprintf(r.w, "---- %s %s\n%s", pkg, test, b)
		delete(p.output, test)
	}
}

// finish takes the end of a package.
func (r *goReader) finish(e event) {
	if e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
		return
	}
	p := r.of(e.Package)
	if e.Action == "fail" {
		r.failPackage(p, e)
	}
	delete(r.packages, e.Package)
	r.total.add(p.counts)
	r.times.add("package", e.Package, seconds(e.Elapsed))
	switch {
	case e.Action == "fail":
		fmt.Fprintf(r.w, "FAIL %s (%.1fs): %v\n", e.Package, e.Elapsed, p.counts)
	case p.counts == counts{}:
	default:
		fmt.Fprintf(r.w, "ok   %s (%.1fs): %v\n", e.Package, e.Elapsed, p.counts)
	}
}

// failPackage prints what is left of a package that failed: tests that never
// ended (a crash or a time-out), its own output, and the compiler's.
func (r *goReader) failPackage(p *goPackage, e event) {
	if p.failed == 0 {
		p.failed++
	}
	if b := r.builds[e.FailedBuild]; b != nil {
		fmt.Fprintf(r.w, "---- build of %s\n%s", e.FailedBuild, b)
	}
	names := make([]string, 0, len(p.output))
	for name := range p.output {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		r.show(p, e.Package, name)
	}
}

// end counts packages that never ended, and a command that failed otherwise.
func (r *goReader) end(err error) counts {
	for name, p := range r.packages {
		r.failPackage(p, event{Package: name})
		r.total.add(p.counts)
		fmt.Fprintf(r.w, "FAIL %s: did not end\n", name)
	}
	if err != nil && r.total.failed == 0 {
		fmt.Fprintln(r.w, "FAIL:", err)
		r.total.failed++
	}
	return r.total
}

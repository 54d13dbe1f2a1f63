//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// event is one line of go test -json.
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string  `json:",omitempty"`
	Elapsed float64 `json:",omitempty"` // seconds
	Output  string  `json:",omitempty"`
}

// stream writes events; it is safe for concurrent use. Errors of the writer are
// those of a closed standard output, where nobody can be told.
type stream struct {
	mu    sync.Mutex
	w     io.Writer
	fails int // events that say so
}

func (s *stream) send(e event) {
	e.Time = time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	s.line(e, line)
}

// line passes on an event as it is written already.
func (s *stream) line(e event, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Action == "fail" {
		s.fails++
	}
	_, _ = s.w.Write(append(line, '\n'))
}

// failed reports whether any test or package failed.
func (s *stream) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails > 0
}

// suite reports tests as those of one package.
type suite struct {
	s      *stream
	name   string
	began  time.Time
	took   float64 // seconds, by the test that is reported next; 0: not known
	failed bool
}

func newSuite(s *stream, name string) *suite {
	s.send(event{Action: "start", Package: name})
	return &suite{s: s, name: name, began: time.Now()}
}

// test reports one test that has run; trouble is "" if it passed.
func (s *suite) test(name, trouble string) {
	s.outcome(name, trouble, passOrFail(trouble == ""))
}

// outcome reports a test with its output: pass, fail or skip.
func (s *suite) outcome(name, output, action string) {
	s.s.send(event{Action: "run", Package: s.name, Test: name})
	for line := range strings.Lines(output) {
		s.s.send(event{Action: "output", Package: s.name, Test: name, Output: strings.TrimSuffix(line, "\n") + "\n"})
	}
	s.s.send(event{Action: action, Package: s.name, Test: name, Elapsed: s.took})
	s.took = 0
	s.failed = s.failed || action == "fail"
}

func (s *suite) end() {
	s.s.send(event{Action: passOrFail(!s.failed), Package: s.name, Elapsed: time.Since(s.began).Seconds()})
}

func passOrFail(ok bool) string {
	if ok {
		return "pass"
	}
	return "fail"
}

// results turns what one program writes into events.
type results interface {
	io.Writer
	// end is told how the program ended, "" for well.
	end(trouble string)
}

// newResults returns the reader for a kind of program.
func newResults(s *stream, k kind, name string) (results, error) {
	switch k {
	case goTest:
		return newGoResults(s, name)
	case cTest:
		u := newSuite(s, name)
		return &cResults{suite: u, last: u.began}, nil
	}
	return &plainResults{suite: newSuite(s, name)}, nil
}

// goResults has go tool test2json read a test binary's output.
type goResults struct {
	s     *stream
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	done  chan struct{} // closed when all events are sent
	ended bool          // the package has; valid after done
}

// marker starts the lines of a test binary that are not output of a test.
const marker = "\x16"

func newGoResults(s *stream, name string) (*goResults, error) {
	r := &goResults{
		s: s, name: name, done: make(chan struct{}),
		cmd: exec.Command("go", "tool", "test2json", "-p", name, "-t"),
	}
	in, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("run go tool test2json: %w", err)
	}
	r.in = in
	go r.pass(out)
	return r, nil
}

// pass passes on the events of test2json.
func (r *goResults) pass(out io.Reader) {
	defer close(r.done)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var e event
		if json.Unmarshal(line, &e) == nil && e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			r.ended = true
		}
		r.s.line(e, line[:len(line)-1])
	}
}

func (r *goResults) Write(b []byte) (int, error) { return r.in.Write(b) }

// end closes the stream. The lines make a package fail whose program ended badly
// after "PASS"; a program that ended well before it did not run its tests. The
// result of test2json adds nothing.
func (r *goResults) end(trouble string) {
	if trouble != "" {
		fmt.Fprintf(r.in, "\n%s%s\n%sFAIL\n", marker, trouble, marker)
	}
	r.in.Close()
	<-r.done
	_ = r.cmd.Wait()
	if !r.ended {
		r.s.send(event{Action: "output", Package: r.name, Output: "the program ended before its tests did\n"})
		r.s.send(event{Action: "fail", Package: r.name})
	}
}

// cResults reads the lines "ok NAME" and "FAIL NAME" of firmware/test/harness.h.
// The lines before such a line belong to its test.
type cResults struct {
	*suite
	partial string // a line without its end
	output  strings.Builder
	tests   int
	last    time.Time // when the last one ended
}

func (r *cResults) Write(b []byte) (int, error) {
	text := r.partial + string(b)
	for {
		line, rest, whole := strings.Cut(text, "\n")
		if !whole {
			r.partial = text
			return len(b), nil
		}
		r.line(line)
		text = rest
	}
}

func (r *cResults) line(line string) {
	word, name, _ := strings.Cut(line, " ")
	if name == "" || strings.Contains(name, " ") || word != "ok" && word != "FAIL" {
		r.output.WriteString(line + "\n")
		return
	}
	r.tests++
	if word == "FAIL" {
		r.output.WriteString(line + "\n")
	}
	now := time.Now()
	r.took, r.last = now.Sub(r.last).Seconds(), now
	r.outcome(name, r.output.String(), passOrFail(word == "ok"))
	r.output.Reset()
}

func (r *cResults) end(trouble string) {
	r.output.WriteString(r.partial)
	switch {
	case trouble != "" && !r.failed:
		r.test("exit", r.output.String()+trouble)
	case r.tests == 0:
		r.test("exit", r.output.String()+"no test ran")
	}
	r.suite.end()
}

// plainResults makes one test of a program.
type plainResults struct {
	*suite
	output strings.Builder
}

func (r *plainResults) Write(b []byte) (int, error) { return r.output.Write(b) }

func (r *plainResults) end(trouble string) {
	text := r.output.String()
	if trouble != "" {
		text += "\n" + trouble
	}
	r.outcome("run", text, passOrFail(trouble == ""))
	r.suite.end()
}

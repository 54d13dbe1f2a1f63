package main

import (
	"bytes"
	"io"
	"sync"
)

// output is where all suites print. Each Write is a number of whole lines.
type output struct {
	mu       sync.Mutex
	w        io.Writer
	failures failures
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// prefixed passes whole lines on, each behind a prefix. It belongs to one suite.
type prefixed struct {
	to     *output
	prefix string
	rest   []byte // a line without its end
}

func (p *prefixed) Write(text []byte) (int, error) {
	p.rest = append(p.rest, text...)
	for {
		line, after, whole := bytes.Cut(p.rest, []byte{'\n'})
		if !whole {
			return len(text), nil
		}
		if err := p.print(line); err != nil {
			return 0, err
		}
		p.rest = after
	}
}

func (p *prefixed) print(line []byte) error {
	p.to.failures.look(p.prefix, line)
	_, err := p.to.Write(append(append([]byte(p.prefix), line...), '\n'))
	return err
}

// flush passes on a last line that has no end.
func (p *prefixed) flush() {
	if len(p.rest) > 0 {
		_ = p.print(p.rest) // the standard output is closed: nobody can be told
		p.rest = nil
	}
}

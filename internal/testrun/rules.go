package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/nfcomms/nfcomms/internal/proofs"
)

// ruleTable holds the rules of a document to the tests that pass.
type ruleTable struct {
	document string
	rules    []proofs.Rule
	mu       sync.Mutex
	passed   map[proofs.Run]bool // what must pass, and whether it did
}

// readRules reads a document; "" is one without rules.
func readRules(document string) (*ruleTable, error) {
	b := &ruleTable{document: document, passed: make(map[proofs.Run]bool)}
	if document == "" {
		return b, nil
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	rules, wrong := proofs.Read(string(text))
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s: %w", document, errors.New(strings.Join(wrong, "; ")))
	}
	b.rules = rules
	for _, r := range rules {
		for _, t := range r.Tests {
			for _, run := range t.Runs() {
				b.passed[run] = false
			}
		}
	}
	return b, nil
}

// module is what package paths start with.
const module = "github.com/nfcomms/nfcomms/"

// pass notes a test that passed.
func (b *ruleTable) pass(pkg, test string) {
	run := proofs.Run{Folder: strings.TrimPrefix(pkg, module), Name: test}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, wanted := b.passed[run]; wanted {
		b.passed[run] = true
	}
}

// check counts the rules and prints which test of a rule did not pass. No suite
// runs any more.
func (b *ruleTable) check(w io.Writer) (c counts) {
	for _, r := range b.rules {
		held := true
		for _, t := range r.Tests {
			for _, run := range t.Runs() {
				if !b.passed[run] {
					fmt.Fprintf(w, "FAIL %s: rule %s: %s %s did not pass\n", b.document, r.Name, run.Folder, run.Name)
					held = false
				}
			}
		}
		if held {
			c.passed++
		} else {
			c.failed++
		}
	}
	if len(b.rules) > 0 {
		fmt.Fprintf(w, "== rules of %s: %v\n\n", b.document, c)
	}
	return c
}

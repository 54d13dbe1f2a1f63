// Package proofs reads the table at the end of docs/semantics.md, which names
// the tests that hold each rule.
package proofs

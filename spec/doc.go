// Package spec verifies logs of slots: it accepts a log exactly if it is a path of the tables of
// internal/proto. docs/proof.md has the claims.
package spec

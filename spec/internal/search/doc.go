// Package search has models of the protocol, made of the tables of internal/proto, and their broken
// variants. SPIN searches the models exhaustively, and must refute the variants. docs/proof.md has
// the claims.
package search

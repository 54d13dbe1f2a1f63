// Package spec is the proof of the protocol: models that are made of the tables of internal/proto and
// searched exhaustively by SPIN, variants of them that are broken and must be refuted, and a verifier
// that accepts a log of slots exactly if it is a path of the tables. docs/proof.md has the claims.
package spec

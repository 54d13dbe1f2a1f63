// Package model holds two formulas that the library evaluates, as pure functions: the bytes that
// members of a group exchange, and the error rate of a link that a test supports. Those that are
// only compared with published figures are in bench/internal/papers.
package model

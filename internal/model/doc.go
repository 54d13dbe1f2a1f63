// Package model holds formulas that the library evaluates, as pure functions: the bytes that members
// of a group exchange, the error rate of a link that a test supports, and the time of an access to device
// memory. Those that are only compared with published figures are in bench/internal/papers.
package model

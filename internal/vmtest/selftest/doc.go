// Package selftest is run in a guest and holds the harness to what it promises
// the programs that run there.
package selftest

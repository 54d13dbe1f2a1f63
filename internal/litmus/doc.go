// Package litmus says what a few threads may see of each other's stores: in every order that a
// kind of processor allows for their accesses. Tests ask it whether each barrier of a protocol is
// needed, and whether all of them are enough.
package litmus

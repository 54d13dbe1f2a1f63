// Package shmwire is what a client and a device process say to each other over a
// UNIX socket, before and beside the memory that they share. docs/shm.md describes it.
package shmwire

// Package linear checks histories of calls on channels for linearizability: whatever calls overlap,
// there is an order of them, within their times, in which each did what it returned. Of a history that
// has none it prints the calls of as few messages as are refused by themselves. It has nothing but its
// tests.
package linear

// Package linear holds histories of calls on channels to a sequential specification: whatever calls
// overlap, there is an order of them, within their times, in which each did what it returned. It has
// nothing but its test.
package linear

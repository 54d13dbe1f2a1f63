// Package stack is the stack analysis: where the time of a transfer goes.
package stack

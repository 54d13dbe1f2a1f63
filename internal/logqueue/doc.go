// Package logqueue hands log records to a user's handler on a goroutine of its
// own: a handler that blocks, or that calls the device it hears from, holds up
// nobody but itself.
package logqueue

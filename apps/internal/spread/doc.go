// Package spread runs a device program as many processes, on all islands in turn.
package spread

// Package surge reports events one by one while they are few, and
// counts them while they are many.
package surge

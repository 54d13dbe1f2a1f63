// Package surge tells what happens one by one while it happens now and then, and
// counts it while it comes in a surge.
package surge

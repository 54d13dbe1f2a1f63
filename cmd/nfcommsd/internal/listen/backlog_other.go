//go:build !linux

package listen

import "syscall"

// takeRaw does nothing: fromBacklog needs Linux.
func (*limited) takeRaw(syscall.Conn) {}

// fromBacklog returns nothing: connections are taken one by one.
func (*limited) fromBacklog() *Conn { return nil }

//go:build freebsd || openbsd || dragonfly

package bridge

import "syscall"

// errnoStalled replaces ETIME, which these systems lack.
const errnoStalled = syscall.EDEADLK

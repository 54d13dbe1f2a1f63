//go:build !freebsd && !openbsd && !dragonfly

package bridge

import "syscall"

const errnoStalled = syscall.ETIME

//go:build cgo

package main

import (
	"bufio"
	"log/slog"
	"os"
	"sync"
	"syscall"
)

// deviceLog carries the device's log lines to a logger. Its threads write to a
// pipe that never blocks: a reader that is too slow loses lines.
type deviceLog struct {
	write int
	done  sync.WaitGroup
}

func newDeviceLog(log *slog.Logger) (*deviceLog, error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	l := &deviceLog{write: fds[1]}
	read := os.NewFile(uintptr(fds[0]), "nfsim-device-log")
	l.done.Go(func() {
		defer read.Close()
		for lines := bufio.NewScanner(read); lines.Scan(); {
			log.Info(lines.Text(), "source", "device")
		}
	})
	return l, nil
}

// fd is what the device writes to. It stays the log's.
func (l *deviceLog) fd() int { return l.write }

// Close waits for the last line. The device must have ended.
func (l *deviceLog) Close() {
	_ = syscall.Close(l.write) // whole lines were written, or none
	l.done.Wait()
}

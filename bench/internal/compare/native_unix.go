//go:build unix

package compare

import (
	"bytes"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// GroupOutput runs a command whose context ends it together with all that it
// started, and returns what it printed; errs is where its errors go, nil: there too.
func GroupOutput(cmd *exec.Cmd, errs io.Writer, grace time.Duration) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, errs
	if errs == nil {
		cmd.Stderr = &out
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace // then its first process is killed
	err := cmd.Run()
	if err != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of it, if anything
	}
	return out.Bytes(), err
}

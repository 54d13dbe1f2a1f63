package subprocess

import (
	"context"
	"os/exec"
	"time"
)

// lastOutput bounds the wait for output that a process outside the command's group keeps open.
const lastOutput = time.Second

// Command returns a command whose processes are a group of their own, where the system has such.
// When ctx ends, all of the group are killed. When the command ended, by itself or so, its output
// is read for a second at most: Wait and Run then return [exec.ErrWaitDelay], if the command
// succeeded. An interrupt at the terminal does not reach the group.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = lastOutput
	group(cmd)
	return cmd
}

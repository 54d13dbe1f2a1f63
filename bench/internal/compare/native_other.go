//go:build !unix

package compare

import (
	"errors"
	"io"
	"os/exec"
	"time"
)

// GroupOutput fails: groups of processes are for UNIX.
func GroupOutput(*exec.Cmd, io.Writer, time.Duration) ([]byte, error) {
	return nil, errors.New("for UNIX alone")
}

//go:build !unix

package subprocess

import "os/exec"

// group does nothing: there are no process groups, and the context ends the first process alone.
func group(*exec.Cmd) {}

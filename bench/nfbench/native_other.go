//go:build !unix

package main

import (
	"errors"
	"io"
	"os/exec"
	"time"
)

func groupOutput(*exec.Cmd, io.Writer, time.Duration) ([]byte, error) {
	return nil, errors.New("for UNIX alone")
}

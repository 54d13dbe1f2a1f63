//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// shell loads the modules and gives the console to a shell until that ends.
func shell(plan *wire.Plan) error {
	for _, m := range plan.Modules {
		if err := loadModule(m); err != nil {
			fmt.Println("guest:", err)
		}
	}
	console, err := os.OpenFile("/dev/ttyS0", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open console: %w", err)
	}
	defer console.Close()
	if text, err := exec.Command("/bin/busybox", "--install", "-s", "/bin").CombinedOutput(); err != nil {
		return fmt.Errorf("install busybox: %w: %s", err, text)
	}
	fmt.Fprint(console, plan.Banner)
	cmd := exec.Command("/bin/sh", "-l")
	cmd.Env = append(append([]string{"TERM=vt100", "PS1=guest:\\w# "}, environment...), "PWD=/tmp")
	cmd.Dir = "/tmp"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = console, console, console
	// A session with the console as its terminal: Ctrl-C and jobs work.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	var status *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &status) {
		return fmt.Errorf("run shell: %w", err)
	}
	return nil
}

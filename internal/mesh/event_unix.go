//go:build unix

package mesh

import (
	"fmt"
	"os"
	"syscall"
)

// openEvent makes a file of the caller's own of an eventfd of the mesh.
func openEvent(event int) (*os.File, error) {
	fd, err := syscall.Dup(event)
	if err != nil {
		return nil, fmt.Errorf("event of a mesh: %w", err)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "event"), nil
}

package scripted

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func newDoorbell() (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create doorbell: %w", err)
	}
	return os.NewFile(uintptr(fd), "doorbell"), nil
}

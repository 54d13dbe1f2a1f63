//go:build !linux

package scripted

import (
	"errors"
	"fmt"
	"os"
)

// newDoorbell needs the event files of Linux.
func newDoorbell() (*os.File, error) {
	return nil, fmt.Errorf("create doorbell: %w", errors.ErrUnsupported)
}

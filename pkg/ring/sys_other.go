//go:build unix && !linux

package ring

import (
	"errors"
	"fmt"
)

// A ring needs memory that is sealed, and processes that can be watched: Linux.
// The first call of Create, Open or NewPoll elsewhere says so.
var errLinux = fmt.Errorf("rings need Linux: %w", errors.ErrUnsupported)

func platform() error                { return errLinux }
func newMemory() (int, error)        { return -1, errLinux }
func seal(int) error                 { return errLinux }
func sealed(int) bool                { return false }
func newEvent() (int, error)         { return -1, errLinux }
func populate([]byte) error          { return errLinux }
func openProcess(int32) (int, error) { return -1, errLinux }
func yield()                         {}

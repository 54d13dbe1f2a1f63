//go:build !unix

package mesh

import (
	"errors"
	"os"
)

// openEvent fails: there are no meshes on such a system.
func openEvent(int) (*os.File, error) { return nil, errors.ErrUnsupported }

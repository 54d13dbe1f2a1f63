//go:build !linux || !(amd64 || arm64 || riscv64)

package kdev

import (
	"fmt"
	"runtime"

	"github.com/nfcomms/nfcomms/bridge"
)

// openNode returns what this system lacks.
func openNode(path string) (kernel, error) {
	return nil, fmt.Errorf("%s: the module nfcomms is for Linux on amd64, arm64 and riscv64, this is %s on %s: %w",
		path, runtime.GOOS, runtime.GOARCH, bridge.ErrNotSupported)
}

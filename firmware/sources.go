//go:build cgo

package firmware

import "embed"

// sources are the rooms' C files. To embed them is what tells the build cache,
// and `go mod vendor`, of files that cgo does not look for: a package is rebuilt
// when one of its embedded files changes. No program reads them, so the linker
// leaves them out.
//
//go:embed core/*.[ch] port/*.[ch] programs/*.[ch]
var sources embed.FS

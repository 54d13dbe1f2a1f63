//go:build cgo

package firmware

import "embed"

// sources are the rooms' C files. cgo knows of files of this folder only; as they
// are embedded, the build cache rebuilds the package when one of them changes, and
// `go mod vendor` copies them. No program reads them, so the linker
// leaves them out.
//
//go:embed core/*.[ch] link/*.[ch] port/*.[ch] programs/*.[ch]
var sources embed.FS

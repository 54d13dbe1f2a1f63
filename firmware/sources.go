//go:build cgo

package firmware

import "embed"

// sources are the C files of the rooms, which internal/firmware compiles. cgo tracks files of its
// own folder only. These are embedded in a package that internal/firmware imports, so the build
// cache compiles them again when one of them changes, and `go mod vendor` copies them. No program
// reads them, so the linker leaves them out.
//
//go:embed *.h core/*.[ch] link/*.[ch] port/*.[ch] programs/*.[ch]
var sources embed.FS

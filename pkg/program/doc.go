// Package program builds device programs: C that includes nfc_fw.h becomes an image
// for Device.Load.
//
//	//go:embed device
//	var source embed.FS
//	…
//	image, err := program.Build(ctx, source, program.Options{})
//	…
//	name, err := dev.Load(ctx, image)
//
// The compiler is the machine's own; the headers are part of this package. docs/programs.md describes
// the rights of programs, and how to debug one.
package program

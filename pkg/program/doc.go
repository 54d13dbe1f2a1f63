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
// The compiler is the machine's own; the headers come with this package. What
// programs may do, and how one is debugged, is in docs/programs.md.
package program

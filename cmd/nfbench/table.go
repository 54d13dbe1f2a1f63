package main

import (
	"fmt"
	"io"
)

// table writes the first lines of every report.
func (h Header) table(w io.Writer) {
	fmt.Fprintf(w, "device: %s (%s, %s), islands %d, window %d\n",
		h.Device.Address, h.Device.Label, h.Device.Driver, h.Device.Islands, h.Device.Window)
	fmt.Fprintf(w, "host: %s, %d CPUs, %s/%s, %s, load %.2f\n\n",
		h.Machine.CPU, h.Machine.CPUs, h.Machine.OS, h.Machine.Arch, h.Machine.Go, h.Machine.Load1)
}

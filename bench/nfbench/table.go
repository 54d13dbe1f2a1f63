package main

import (
	"fmt"
	"io"
)

// table writes the first lines of every report.
func (h Header) table(w io.Writer) {
	fmt.Fprintf(w, "device: %s (%s, %s), islands %d, window %d\n",
		h.Device.Address, h.Device.Label, h.Device.Driver, h.Device.Islands, h.Device.Window)
	fmt.Fprintf(w, "%s\n\n", h.Machine.text())
}

package cli

import (
	"fmt"
	"io"
)

// Table writes the first lines of every report.
func (h Header) Table(w io.Writer) {
	fmt.Fprintf(w, "device: %s (%s, %s), islands %d, window %d\n",
		h.Device.Address, h.Device.Label, h.Device.Driver, h.Device.Islands, h.Device.Window)
	fmt.Fprintf(w, "%s\n\n", h.Machine.Text())
}

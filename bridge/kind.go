package bridge

// Kinds of device, as reports label their figures.
const (
	// kindSimulated is a program of this machine: no bus is between.
	kindSimulated = "simulated"
	// kindEmulated is a card that a program stands for: its figures are that program's.
	kindEmulated = "emulated"
	// kindHardware is a card.
	kindHardware = "hardware"
)

// emulatorVendor is the PCI vendor of cards that exist in emulators alone (docs/device-spec.md).
const emulatorVendor = 0x1234

// Kind returns which kind of device it is. A device of the kernel module is hardware if it is a
// board of a vendor that makes boards.
func (i Info) Kind() string {
	switch {
	case i.Driver == "vfio": // a program serves the function
		return kindEmulated
	case i.Driver != "dev":
		return kindSimulated
	case i.Board == nil || i.Board.Vendor == emulatorVendor:
		return kindEmulated
	}
	return kindHardware
}

package pci

// Ids (enum nfc_pci_id).
const (
	Vendor   = 0x1234
	Device   = 0x4e46
	Revision = 1
	Class    = 0x120000
)

// BARs and their sizes in bytes (enum nfc_pci_bar).
const (
	BarRegisters  = 0
	BarMSIX       = 1
	BarMailboxes  = 2
	RegistersSize = 4096
	MSIXSize      = 4096
	MSIXPBA       = 0x800
	VectorsMax    = 17
)

// Offsets in BAR 0 (enum nfc_register).
const (
	RegID             = 0x000
	RegVersion        = 0x004
	RegABI            = 0x008
	RegCapabilities   = 0x00c
	RegStatus         = 0x010
	RegControl        = 0x014
	RegEpoch          = 0x018
	RegVectors        = 0x01c
	RegHoldoff        = 0x020
	RegHostBeat       = 0x024
	RegWatchdog       = 0x028
	RegDMAFaults      = 0x02c
	RegMessages       = 0x030
	RegShapeChannels  = 0x040
	RegShapeMailboxes = 0x044
	RegShapeIslands   = 0x048
	RegShapeSlots     = 0x04c
	RegShapeWindow    = 0x050
	RegShapeTimeout   = 0x054
	RegShapeEMEM      = 0x058
	RegShapeStatus    = 0x05c
	RegDoorbell       = 0x100
	RegVectorHoldoff  = 0x180
)

// Version of the register interface (enum nfc_pci_version).
const (
	Major = 1
	Minor = 0
)

// Bits of RegCapabilities (enum nfc_pci_capability).
const (
	CapShape         = 1 << 0
	CapHoldoff       = 1 << 1
	CapWatchdog      = 1 << 2
	CapVectorHoldoff = 1 << 3
)

// Fields of RegStatus (enum nfc_pci_status).
const (
	StatusState    = 0xff
	StatusDMA      = 1 << 8
	StatusBusy     = 1 << 9
	StatusWatchdog = 1 << 10
)

// Values of RegControl (enum nfc_pci_control).
const (
	ControlReset   = 1
	ControlQuiesce = 2
)

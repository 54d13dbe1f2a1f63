package vfiouser

// Regions of a PCI device.
const (
	RegionBAR0   = 0
	RegionConfig = 7
	NumRegions   = 9
	numBARs      = 6
)

// Interrupt kinds of a PCI device.
const (
	IRQMSIX  = 2
	irqError = 3 // and above: not for devices
	NumIRQs  = 5
)

// Device is what a Conn serves. Its methods are called one at a time; errors
// that wrap a syscall.Errno reach the client as that errno, others as EIO.
type Device interface {
	// Region describes a region; of Size 0 if the device does not have it.
	Region(index int) Region
	// Vectors returns the number of MSI-X vectors.
	Vectors() int
	// ReadRegion fills p. The access is inside the region.
	ReadRegion(index int, offset uint64, p []byte) error
	// WriteRegion takes p. The access is inside the region. The client may
	// wait for it with all its processors: long work belongs elsewhere.
	WriteRegion(index int, offset uint64, p []byte) error
	// MapDMA makes client memory reachable.
	MapDMA(Mapping) error
	// UnmapDMA returns when the device uses nothing of the range any more.
	UnmapDMA(address, size uint64) error
	// UnmapAll is UnmapDMA for everything.
	UnmapAll()
	// AssignIRQ gives a vector its eventfd, -1: none.
	AssignIRQ(vector, file int) error
	// TriggerIRQ interrupts through a vector, to test the way.
	TriggerIRQ(vector int)
	// Reset is a bus reset; it returns when it is done.
	Reset() error
}

// Region is one region of a device.
type Region struct {
	Size        uint64 // bytes; 0: there is none
	Read, Write bool
	Map         bool // File may be mapped, from its start
	File        int
}

// Mapping is a piece of client memory. File is valid during the call; -1: its
// bytes are to be had through ReadDMA and WriteDMA only.
type Mapping struct {
	Address, Size, Offset uint64
	Read, Write           bool
	File                  int
}

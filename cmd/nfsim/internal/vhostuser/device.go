package vhostuser

import "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"

// Device is what a Conn serves: a part of vfiouser.Device, with its contract.
type Device interface {
	// Region describes a region; of Size 0 if the device does not have it.
	Region(index int) vfiouser.Region
	// Vectors returns the number of MSI-X vectors.
	Vectors() int
	// ReadRegion fills p. The access lies inside the region.
	ReadRegion(index int, offset uint64, p []byte) error
	// WriteRegion takes p. The access lies inside the region.
	WriteRegion(index int, offset uint64, p []byte) error
	// MapDMA makes client memory reachable.
	MapDMA(vfiouser.Mapping) error
	// UnmapAll returns when the device uses no client memory any more.
	UnmapAll()
	// AssignIRQ gives a vector its eventfd, -1: none.
	AssignIRQ(vector, file int) error
}

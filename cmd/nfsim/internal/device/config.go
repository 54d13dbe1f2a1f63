package device

import (
	"encoding/binary"

	"github.com/nfcomms/nfcomms/internal/pci"
)

// configSize is that of a PCI Express function's config space, in bytes.
const configSize = 4096

// Offsets in config space, by the names of the PCI specifications.
const (
	cfgVendor    = 0x00
	cfgDevice    = 0x02
	cfgCommand   = 0x04
	cfgStatus    = 0x06
	cfgRevision  = 0x08
	cfgCacheLine = 0x0c
	cfgBAR0      = 0x10
	cfgSubVendor = 0x2c
	cfgSubDevice = 0x2e
	cfgCapPtr    = 0x34
	cfgIRQLine   = 0x3c

	capPM     = 0x40
	cfgPMCSR  = capPM + 4
	capMSIX   = 0x50
	capPCIe   = 0x60
	cfgDevCap = capPCIe + 0x04
	cfgDevCtl = capPCIe + 0x08
)

// Bits in config space.
const (
	cmdMemory  = 1 << 1
	cmdMaster  = 1 << 2
	cmdParity  = 1 << 6
	cmdSERR    = 1 << 8
	cmdNoINTx  = 1 << 10
	devCapFLR  = 1 << 28
	devCtlFLR  = 1 << 15
	pmStateD0  = 0
	pmStateAll = 3
)

var order = binary.LittleEndian

// config is the config space: what it holds, and which bits the host may
// change.
type config struct {
	bytes, mask [configSize]byte
	barSize     uint64 // of the mailbox BAR
	vectors     int
}

func newConfig(barSize uint64, vectors int) *config {
	c := &config{barSize: barSize, vectors: vectors}
	c.reset()
	return c
}

func (c *config) set16(at int, v, mask uint16) {
	order.PutUint16(c.bytes[at:], v)
	order.PutUint16(c.mask[at:], mask)
}

func (c *config) set32(at int, v, mask uint32) {
	order.PutUint32(c.bytes[at:], v)
	order.PutUint32(c.mask[at:], mask)
}

// reset gives every field its value after a reset.
func (c *config) reset() {
	c.bytes, c.mask = [configSize]byte{}, [configSize]byte{}
	c.set16(cfgVendor, pci.Vendor, 0)
	c.set16(cfgDevice, pci.Device, 0)
	c.set16(cfgCommand, 0, cmdMemory|cmdMaster|cmdParity|cmdSERR|cmdNoINTx)
	c.set16(cfgStatus, 1<<4, 0) // there are capabilities
	c.set32(cfgRevision, pci.Class<<8|pci.Revision, 0)
	c.set32(cfgCacheLine, 0, 0xff)
	c.set16(cfgSubVendor, pci.Vendor, 0)
	c.set16(cfgSubDevice, pci.Device, 0)
	c.bytes[cfgCapPtr] = capPM
	c.mask[cfgIRQLine] = 0xff
	c.resetBARs()
	c.resetCapabilities()
}

// resetBARs lays the registers, the MSI-X table and the mailboxes: the address
// bits above a BAR's size can be written, the type bits below cannot.
func (c *config) resetBARs() {
	const prefetchable64 = 0xc
	c.set32(cfgBAR0+4*pci.BarRegisters, 0, ^uint32(pci.RegistersSize-1))
	c.set32(cfgBAR0+4*pci.BarMSIX, 0, ^uint32(pci.MSIXSize-1))
	high, low := ^(c.barSize-1)>>32, uint32(^(c.barSize - 1))
	c.set32(cfgBAR0+4*pci.BarMailboxes, prefetchable64, low)
	c.set32(cfgBAR0+4*pci.BarMailboxes+4, 0, uint32(high))
}

func (c *config) resetCapabilities() {
	const (
		idPM, idMSIX, idPCIe = 0x01, 0x11, 0x10
		noSoftReset          = 1 << 3 // D3 keeps the device's state
		x1At25GT             = 1<<4 | 1
		roleBasedErrors      = 1 << 15
	)
	c.set16(capPM, capMSIX<<8|idPM, 0)
	c.set16(capPM+2, 3, 0) // version 3, D0 and D3 only
	c.set16(cfgPMCSR, noSoftReset, pmStateAll)
	c.set16(capMSIX, capPCIe<<8|idMSIX, 0)
	c.set16(capMSIX+2, uint16(c.vectors-1), 3<<14) // enable, mask all
	c.set32(capMSIX+4, pci.BarMSIX, 0)
	c.set32(capMSIX+8, pci.MSIXPBA|pci.BarMSIX, 0)
	c.set16(capPCIe, idPCIe, 0)
	c.set16(capPCIe+2, 2, 0) // version 2, endpoint
	c.set32(cfgDevCap, devCapFLR|roleBasedErrors, 0)
	c.set16(cfgDevCtl, 0, 0x70ff) // FLR reads as 0
	c.set32(capPCIe+0x0c, x1At25GT, 0)
	c.set16(capPCIe+0x10, 0, 0x00c3)
	c.set16(capPCIe+0x12, x1At25GT, 0)
	c.set32(capPCIe+0x2c, 1<<1, 0) // 2.5 GT/s
}

func (c *config) read(at uint64, p []byte) { copy(p, c.bytes[at:]) }

// write changes what may be changed and reports whether a function level reset
// was asked for.
func (c *config) write(at uint64, p []byte) (flr bool) {
	for i, v := range p {
		k := int(at) + i
		c.bytes[k] = c.bytes[k]&^c.mask[k] | v&c.mask[k]
		flr = flr || k == cfgDevCtl+1 && v&(devCtlFLR>>8) != 0
	}
	return flr
}

// master reports whether the function may reach host memory and interrupt.
func (c *config) master() bool {
	return order.Uint16(c.bytes[cfgCommand:])&cmdMaster != 0 &&
		order.Uint16(c.bytes[cfgPMCSR:])&pmStateAll == pmStateD0
}

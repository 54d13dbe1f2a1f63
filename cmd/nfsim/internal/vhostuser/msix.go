package vhostuser

import (
	"errors"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// Offsets and bits of config space.
const (
	cfgCommand = 0x04
	cfgCapPtr  = 0x34
	capMSIX    = 0x11

	commandMemory = 1 << 1
	msixEnable    = 1 << 15
	msixMaskAll   = 1 << 14
	msixSizeMask  = 0x7ff
	barMask       = 7
)

// Entries of an MSI-X table.
const (
	entrySize    = 16
	entryData    = 8
	entryControl = 12
	entryMasked  = 1
)

// msix is the MSI-X table, and what config space says of it.
type msix struct {
	capability uint64
	bar        int
	table      uint64 // offset in the BAR
	pending    uint64 // likewise
	entries    []byte
	owed       uint64 // vectors that fired and were not sent

	memory, enabled, maskAll bool
}

var errNoMSIX = errors.New("vhost-user: the device has no MSI-X table")

// newMSIX finds the device's table. All entries are masked, as after a reset.
func newMSIX(dev Device) (*msix, error) {
	at, err := findMSIX(dev)
	if err != nil {
		return nil, err
	}
	var b [12]byte
	if err := dev.ReadRegion(vfiouser.RegionConfig, at, b[:]); err != nil {
		return nil, err
	}
	table, pending := order.Uint32(b[4:]), order.Uint32(b[8:])
	m := &msix{
		capability: at, bar: int(table & barMask),
		table: uint64(table &^ barMask), pending: uint64(pending &^ barMask),
		entries: make([]byte, entrySize*(1+int(order.Uint16(b[2:])&msixSizeMask))),
	}
	for v := range dev.Vectors() {
		m.entries[v*entrySize+entryControl] = entryMasked
	}
	return m, m.look(dev)
}

// findMSIX walks the list of capabilities.
func findMSIX(dev Device) (uint64, error) {
	var b [2]byte
	if err := dev.ReadRegion(vfiouser.RegionConfig, cfgCapPtr, b[:1]); err != nil {
		return 0, err
	}
	for range 48 { // as many as there is room for
		at := uint64(b[0])
		if at == 0 {
			break
		}
		if err := dev.ReadRegion(vfiouser.RegionConfig, at, b[:]); err != nil {
			return 0, err
		}
		if b[0] == capMSIX {
			return at, nil
		}
		b[0] = b[1]
	}
	return 0, errNoMSIX
}

// look reads what config space says now.
func (m *msix) look(dev Device) error {
	var command, control [2]byte
	err := dev.ReadRegion(vfiouser.RegionConfig, cfgCommand, command[:])
	if err == nil {
		err = dev.ReadRegion(vfiouser.RegionConfig, m.capability+2, control[:])
	}
	c := order.Uint16(control[:])
	m.memory = order.Uint16(command[:])&commandMemory != 0
	m.enabled, m.maskAll = c&msixEnable != 0, c&msixMaskAll != 0
	return err
}

// read puts what lies in the table over p, and adds what is owed to the pending
// bits that the device knows.
func (m *msix) read(offset uint64, p []byte) {
	var owed [8]byte
	order.PutUint64(owed[:], m.owed)
	for i := range p {
		at := offset + uint64(i)
		if k := at - m.table; k < uint64(len(m.entries)) {
			p[i] = m.entries[k]
		} else if k := at - m.pending; k < uint64(len(owed)) {
			p[i] |= owed[k]
		}
	}
}

// write changes the table.
func (m *msix) write(offset uint64, p []byte) {
	for i, v := range p {
		k := offset + uint64(i) - m.table
		switch {
		case k >= uint64(len(m.entries)):
		case k%entrySize == entryControl:
			m.entries[k] = v & entryMasked
		case k%entrySize < entryControl:
			m.entries[k] = v
		}
	}
}

// fire notes that a vector interrupts.
func (m *msix) fire(vector int) { m.owed |= 1 << vector }

// due returns a vector that fired and may be sent; false if there is none.
func (m *msix) due() (vector int, ok bool) {
	if !m.enabled || m.maskAll || m.owed == 0 {
		return 0, false
	}
	for v := range len(m.entries) / entrySize {
		if m.owed&(1<<v) != 0 && m.entries[v*entrySize+entryControl]&entryMasked == 0 {
			return v, true
		}
	}
	return 0, false
}

// message returns what a vector sends, which pays what is owed.
func (m *msix) message(vector int) []byte {
	m.owed &^= 1 << vector
	e := m.entries[vector*entrySize:]
	b := make([]byte, opSize+4)
	b[0] = opMSI
	order.PutUint32(b[4:], 4)
	order.PutUint64(b[8:], order.Uint64(e))
	copy(b[opSize:], e[entryData:entryControl])
	return b
}

//go:build cgo

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/pci"
)

// report is what --report writes: one entry per client, in order.
type report struct {
	Clients []clientReport `json:"clients"`
}

// clientReport is what a client did. The device's counters run on from client
// to client.
type clientReport struct {
	Error    string `json:"error,omitempty"` // why it was cut off
	Messages uint64 `json:"messages"`
	Refused  uint64 `json:"refused"` // of these, answered with an error
	Posted   uint64 `json:"posted"`  // of these, without a reply

	Registers vfiouser.Accesses `json:"registers"`
	Mailboxes vfiouser.Accesses `json:"mailboxes"`

	DMARanges    uint64 `json:"dma_ranges"` // mapped when it ended
	DMAMaps      uint64 `json:"dma_maps"`
	DMAUnmaps    uint64 `json:"dma_unmaps"`
	DMAFaults    uint64 `json:"dma_faults"`
	LastFault    string `json:"last_fault,omitempty"`
	BytesRead    uint64 `json:"bytes_read"`
	BytesWrote   uint64 `json:"bytes_written"`
	Interrupts   uint64 `json:"interrupts"`
	HeldOff      uint64 `json:"interrupts_held_off"`
	DeviceEpochs uint64 `json:"device_epochs"`
	Struck       uint64 `json:"script_faults"` // that the script made happen
}

// add counts when a client has ended, before what it mapped is taken away.
func (r *report) add(s *server, conn *vfiouser.Conn, err error) {
	bus, messages := s.device.Bus().Stats(), conn.Stats()
	c := clientReport{
		Messages: messages.Messages, Refused: messages.Refused, Posted: messages.Posted,
		Registers: messages.BARs[pci.BarRegisters], Mailboxes: messages.BARs[pci.BarMailboxes],
		DMARanges: bus.Ranges, DMAMaps: bus.Maps, DMAUnmaps: bus.Unmaps, DMAFaults: bus.Faults,
		BytesRead: bus.BytesRead, BytesWrote: bus.BytesWritten,
		Interrupts: bus.Interrupts, HeldOff: bus.HeldOff, DeviceEpochs: s.device.Epochs(),
	}
	if err != nil {
		c.Error = err.Error()
	}
	if s.hostile != nil {
		c.Struck = s.hostile.Struck()
	}
	if bus.Faults > 0 {
		verb := "read"
		if bus.FaultWrite {
			verb = "write"
		}
		c.LastFault = fmt.Sprintf("%s %#x", verb, bus.FaultAddress)
	}
	r.Clients = append(r.Clients, c)
}

// write writes the report so far; an empty path means nowhere.
func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

package kdev

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/shape"
)

// nodePrefix and a number are the path of a device node.
const nodePrefix = "/dev/nfcomms"

// location is what a "dev:" address names.
type location struct {
	address string
	node    string
	reset   bool          // the address gives the next epoch a shape
	busy    time.Duration // that a wait looks for what comes before it sleeps
	shape   uapi.Reset    // zero fields: as the device likes
}

func init() {
	bridge.RegisterCheck("dev", func(a bridge.Address) error {
		_, err := parse(a)
		return err
	})
}

// parse reads a "dev:" address. Errors wrap bridge.ErrOption for an unknown
// name and bridge.ErrInvalid for what cannot be read.
func parse(a bridge.Address) (location, error) {
	_, busy := a.Options["busy-poll"]
	l := location{address: a.String(), reset: len(a.Options) > 1 || len(a.Options) > 0 && !busy}
	switch _, err := strconv.ParseUint(a.Path, 10, 20); {
	case err == nil:
		l.node = nodePrefix + a.Path
	case filepath.IsAbs(a.Path):
		l.node = a.Path
	default:
		return l, fmt.Errorf("path %q: %w: want a number as in \"dev:0\", or the path of a device node", a.Path, bridge.ErrInvalid)
	}
	if err := a.Only(append(slices.Clone(shape.Options), "busy-poll")...); err != nil {
		return l, err
	}
	s, err := shape.Parse(a)
	if err != nil {
		return l, err
	}
	l.shape = uapi.Reset{
		Size: uint32(unsafe.Sizeof(l.shape)), Channels: s.Channels, Mailboxes: s.Mailboxes, Islands: s.Islands,
		Slots: s.Slots, Window: s.Window, TimeoutMS: s.TimeoutMS, EMEM: s.EMEM,
	}
	return l, a.Duration("busy-poll", &l.busy, bridge.Limits[time.Duration]{Max: busyMax})
}

// busyMax bounds what a file may ask for (kmod/uapi/nfcomms.h).
const busyMax = 10 * time.Millisecond

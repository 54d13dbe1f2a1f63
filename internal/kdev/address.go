package kdev

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
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
	if err := a.Only("managers", "islands", "channels", "slots", "window", "emem", "target-timeout", "busy-poll"); err != nil {
		return l, err
	}
	l.shape.Size = uint32(unsafe.Sizeof(l.shape))
	for _, o := range []struct {
		name   string
		to     *uint32
		limits bridge.Limits[int]
	}{
		{"managers", &l.shape.Mailboxes, bridge.Limits[int]{Min: 1, Max: abi.MailboxesMax}},
		{"islands", &l.shape.Islands, bridge.Limits[int]{Min: 1, Max: abi.IslandsMax}},
		{"channels", &l.shape.Channels, bridge.Limits[int]{Min: 1, Max: abi.ChannelsMax}},
		{"slots", &l.shape.Slots, bridge.Limits[int]{Min: abi.SlotsMin, Max: abi.SlotsMax, Power: true}},
		{"window", &l.shape.Window, bridge.Limits[int]{Min: 1, Max: abi.WindowMax, Power: true}},
	} {
		n := 0
		if err := a.Count(o.name, &n, o.limits); err != nil {
			return l, err
		}
		*o.to = uint32(n)
	}
	var wait time.Duration
	if err := a.Duration("target-timeout", &wait, bridge.Limits[time.Duration]{Max: waitMax}); err != nil {
		return l, err
	}
	l.shape.TimeoutMS = uint32((wait + time.Millisecond - 1) / time.Millisecond)
	if err := a.Duration("busy-poll", &l.busy, bridge.Limits[time.Duration]{Max: busyMax}); err != nil {
		return l, err
	}
	return l, a.Size("emem", &l.shape.EMEM, bridge.Limits[uint64]{Min: abi.PageSize, Max: 1 << abi.MemoryShift, Step: abi.PageSize})
}

// busyMax bounds what a file may ask for (kmod/uapi/nfcomms.h).
const busyMax = 10 * time.Millisecond

// waitMax is what a register of milliseconds can hold.
const waitMax = (1<<32 - 1) * time.Millisecond

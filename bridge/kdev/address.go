package kdev

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/kdev/uapi"
)

// nodePrefix and a number are the path of a device node.
const nodePrefix = "/dev/nfcomms"

// location is what a "dev:" address says.
type location struct {
	address string
	node    string
	reset   bool       // the address gives the next life a shape
	shape   uapi.Reset // zero fields: as the device likes
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
	l := location{address: a.String(), reset: len(a.Options) > 0}
	switch _, err := strconv.ParseUint(a.Path, 10, 20); {
	case err == nil:
		l.node = nodePrefix + a.Path
	case filepath.IsAbs(a.Path):
		l.node = a.Path
	default:
		return l, fmt.Errorf("path %q: %w: want a number as in \"dev:0\", or the path of a device node", a.Path, bridge.ErrInvalid)
	}
	if err := a.Only("managers", "islands", "channels", "slots", "window", "emem", "target-timeout"); err != nil {
		return l, err
	}
	l.shape.Size = uint32(unsafe.Sizeof(l.shape))
	for name, to := range map[string]*uint32{
		"managers": &l.shape.Mailboxes, "islands": &l.shape.Islands, "channels": &l.shape.Channels,
		"slots": &l.shape.Slots, "window": &l.shape.Window,
	} {
		n := 0
		if err := a.Count(name, &n); err != nil {
			return l, err
		}
		*to = uint32(n)
	}
	var wait time.Duration
	if err := a.Duration("target-timeout", &wait); err != nil {
		return l, err
	}
	l.shape.TimeoutMS = uint32(min((wait+time.Millisecond-1)/time.Millisecond, 1<<32-1))
	return l, a.Size("emem", &l.shape.EMEM)
}

package shm

import (
	"fmt"
	"os/user"
	"strconv"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

func init() {
	bridge.RegisterCheck("shm", func(a bridge.Address) error {
		_, err := parse(a)
		return err
	})
}

// stallLimits are those of stall-timeout. No call is meant to wait for a year.
var stallLimits = bridge.Limits[time.Duration]{Min: time.Millisecond, Max: 365 * 24 * time.Hour}

// nodeOption names a node of the fabric that the device process is a node of.
const nodeOption = "node"

// options are those of an address.
type options struct {
	path  string
	owner uint32 // who may run the device, beside this user and root
	known bool   // there is an owner
	stall time.Duration
	node  abi.Node // of the fabric …
	far   bool     // … whose device it is, in place of that of the socket's process
	self  uint64   // what nodes know this device's hosts by: those are one
}

// parse reads an address. Errors wrap bridge.ErrOption for an unknown name and
// bridge.ErrInvalid for a value that cannot be.
func parse(a bridge.Address) (options, error) {
	o := options{path: a.Path}
	if a.Path == "" {
		return o, fmt.Errorf("shm takes the path of a socket, such as shm:/run/nfsim/0.sock: %w", bridge.ErrInvalid)
	}
	if len(a.Path) > pathMost {
		return o, fmt.Errorf("path of %d bytes, at most %d: %w", len(a.Path), pathMost, bridge.ErrInvalid)
	}
	if err := a.Only("user", "stall-timeout", nodeOption); err != nil {
		return o, err
	}
	if err := a.Duration("stall-timeout", &o.stall, stallLimits); err != nil {
		return o, err
	}
	if a.Options.Has(nodeOption) {
		text := a.Options.Get(nodeOption)
		if o.node, o.far = abi.ParseNode(text); !o.far {
			return o, fmt.Errorf("option %s=%s: %w: want a node as 1.0.0", nodeOption, text, bridge.ErrInvalid)
		}
	}
	if !a.Options.Has("user") {
		return o, nil
	}
	name := a.Options.Get("user")
	id, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		u, unknown := user.Lookup(name)
		if unknown != nil {
			return o, fmt.Errorf("option user=%s: %w: no such user", name, bridge.ErrInvalid)
		}
		if id, err = strconv.ParseUint(u.Uid, 10, 32); err != nil {
			return o, fmt.Errorf("option user=%s: %w: its number is %s", name, bridge.ErrInvalid, u.Uid)
		}
	}
	o.owner, o.known = uint32(id), true
	return o, nil
}

// pathMost is the longest path of a UNIX socket.
const pathMost = 107

package vfio

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/shape"
)

// Schemes of addresses: a function that a process serves at a socket, and one that the kernel's VFIO
// gives to this process.
const (
	userScheme   = "vfio-user"
	kernelScheme = "vfio"
)

func init() {
	check := func(a bridge.Address) error {
		_, err := parse(a)
		return err
	}
	bridge.RegisterCheck(userScheme, check)
	bridge.RegisterCheck(kernelScheme, check)
}

// stallOption limits how long a transfer may stand still.
const stallOption = "stall-timeout"

// stallLimits are those of stallOption. No call is meant to wait for a year.
var stallLimits = bridge.Limits[time.Duration]{Min: time.Millisecond, Max: 365 * 24 * time.Hour}

// pathMost is the longest path of a UNIX socket.
const pathMost = 107

// options are those of an address.
type options struct {
	scheme string
	path   string        // of a socket, or the place of a function: 0000:01:00.0
	stall  time.Duration // 0: the default
	shape  shape.Shape
}

// parse reads an address. Errors wrap bridge.ErrOption for an unknown name and
// bridge.ErrInvalid for a value that cannot be.
func parse(a bridge.Address) (o options, err error) {
	o = options{scheme: a.Scheme, path: a.Path}
	if a.Scheme == kernelScheme {
		o.path, err = parsePlace(a.Path)
	} else {
		err = checkSocket(a.Path)
	}
	if err != nil {
		return o, err
	}
	if err := a.Only(append(slices.Clone(shape.Options), stallOption)...); err != nil {
		return o, err
	}
	if o.shape, err = shape.Parse(a); err != nil {
		return o, err
	}
	return o, a.Duration(stallOption, &o.stall, stallLimits)
}

func checkSocket(path string) error {
	if path == "" {
		return fmt.Errorf("vfio-user takes the path of a socket, such as vfio-user:/run/nfsim/card.sock: %w", bridge.ErrInvalid)
	}
	if len(path) > pathMost {
		return fmt.Errorf("path of %d bytes, at most %d: %w", len(path), pathMost, bridge.ErrInvalid)
	}
	return nil
}

// places are those of PCI functions, as lspci prints them: domain, bus, device, function.
var places = regexp.MustCompile(`^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// parsePlace reads the place of a function. The domain may be left out.
func parsePlace(s string) (string, error) {
	s = strings.ToLower(s)
	if !places.MatchString(s) {
		return "", fmt.Errorf("vfio takes the place of a PCI function, such as vfio:0000:01:00.0: %w", bridge.ErrInvalid)
	}
	if strings.Count(s, ":") == 1 {
		s = "0000:" + s
	}
	return s, nil
}

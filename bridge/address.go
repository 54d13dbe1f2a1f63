package bridge

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Address is a parsed device address, "scheme:path?option=value&…".
type Address struct {
	Scheme  string
	Path    string
	Options url.Values
}

// String returns the address in the form ParseAddress accepts.
func (a Address) String() string {
	s := a.Scheme + ":" + a.Path
	if len(a.Options) > 0 {
		s += "?" + a.Options.Encode()
	}
	return s
}

// ParseAddress splits a device address. It returns ErrScheme without a scheme
// and ErrOption if the options cannot be read or one is given twice.
func ParseAddress(s string) (Address, error) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" {
		return Address{}, fmt.Errorf("address %q has no scheme (try \"sim:\"): %w", s, ErrScheme)
	}
	path, query, _ := strings.Cut(rest, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return Address{}, fmt.Errorf("address %q: options %q: %w", s, query, ErrOption)
	}
	for name, values := range options {
		if len(values) > 1 {
			return Address{}, fmt.Errorf("address %q: option %q is given twice: %w", s, name, ErrOption)
		}
	}
	return Address{Scheme: scheme, Path: path, Options: options}, nil
}

// Only returns ErrOption, with the known names, if the address has an option
// that is not among them.
func (a Address) Only(known ...string) error {
	for name := range a.Options {
		if !slices.Contains(known, name) {
			return fmt.Errorf("address %q: option %q is not one of %s: %w",
				a, name, strings.Join(known, ", "), ErrOption)
		}
	}
	return nil
}

// OpenFunc opens a device for a back end. o is never nil.
type OpenFunc func(ctx context.Context, a Address, o *Options) (Device, error)

var registry struct {
	sync.RWMutex
	open map[string]OpenFunc
}

// Register makes a back end reachable under a scheme. Back ends call it from
// init; a scheme registered twice is a programming error and panics.
func Register(scheme string, open OpenFunc) {
	registry.Lock()
	defer registry.Unlock()
	if _, dup := registry.open[scheme]; dup {
		panic("bridge: scheme " + scheme + " registered twice")
	}
	if registry.open == nil {
		registry.open = make(map[string]OpenFunc)
	}
	registry.open[scheme] = open
}

// Schemes lists the registered schemes in order.
func Schemes() []string {
	registry.RLock()
	defer registry.RUnlock()
	names := make([]string, 0, len(registry.open))
	for name := range registry.open {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Open opens the device at an address with the back end of its scheme. A nil o
// means the defaults. It returns ErrScheme if there is none, ErrOption for an
// option the back end does not know, and whatever the back end returns.
func Open(ctx context.Context, address string, o *Options) (Device, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	registry.RLock()
	open := registry.open[a.Scheme]
	registry.RUnlock()
	if open == nil {
		return nil, fmt.Errorf("address %q: scheme %q is not one of %s: %w",
			address, a.Scheme, strings.Join(Schemes(), ", "), ErrScheme)
	}
	if o == nil {
		o = &Options{}
	}
	return open(ctx, a, o)
}

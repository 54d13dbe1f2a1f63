package bridge

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/internal/units"
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
// and ErrOption if the options cannot be read or one is given twice, as errors
// that do not repeat the address.
func ParseAddress(s string) (Address, error) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" {
		return Address{}, fmt.Errorf("has no scheme (try \"sim:\"): %w", ErrScheme)
	}
	path, query, _ := strings.Cut(rest, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return Address{}, fmt.Errorf("options %q: %w", query, ErrOption)
	}
	for name, values := range options {
		if len(values) > 1 {
			return Address{}, fmt.Errorf("option %q is given twice: %w", name, ErrOption)
		}
	}
	return Address{Scheme: scheme, Path: path, Options: options}, nil
}

// Only returns ErrOption, with the known names, if the address has an option
// that is not among them.
func (a Address) Only(known ...string) error {
	for name := range a.Options {
		if !slices.Contains(known, name) {
			return fmt.Errorf("option %q is not one of %s: %w",
				name, strings.Join(known, ", "), ErrOption)
		}
	}
	return nil
}

// Limits are the values an option may have: those from Min to Max, both included. They are
// multiples of Step unless that is zero, and powers of two if Power is set.
type Limits[T int | uint64 | time.Duration] struct {
	Min, Max, Step T
	Power          bool
}

// allow reports whether a value is within the limits.
func (l Limits[T]) allow(v T) bool {
	return v >= l.Min && v <= l.Max && (l.Step == 0 || v%l.Step == 0) && (!l.Power || v > 0 && v&(v-1) == 0)
}

// text says in words what is wanted.
func (l Limits[T]) text(what string, show func(T) string) string {
	s := fmt.Sprintf("want a %s, %s..%s", what, show(l.Min), show(l.Max))
	if l.Step != 0 {
		s += ", a multiple of " + show(l.Step)
	}
	if l.Power {
		s += ", a power of two"
	}
	return s
}

// Count reads an option like "8" into to; without the option to stays as it
// is. Errors wrap ErrInvalid and name what was given and what is allowed.
func (a Address) Count(name string, to *int, l Limits[int]) error {
	return option(a, name, to, l, "count", strconv.Itoa, strconv.Atoi)
}

// Size reads an option like "4096", "64KiB" or "6GiB" as bytes, as Count does.
func (a Address) Size(name string, to *uint64, l Limits[uint64]) error {
	return option(a, name, to, l, "size", units.Option, units.ParseBytes)
}

// Duration reads an option like "100ms", as Count does.
func (a Address) Duration(name string, to *time.Duration, l Limits[time.Duration]) error {
	return option(a, name, to, l, "duration", time.Duration.String, time.ParseDuration)
}

// option reads one value, if it is there; its error has what is allowed.
func option[T int | uint64 | time.Duration](a Address, name string, to *T, l Limits[T],
	what string, show func(T) string, read func(string) (T, error)) error {
	if !a.Options.Has(name) {
		return nil
	}
	value := a.Options.Get(name)
	v, err := read(value)
	if err != nil || !l.allow(v) {
		return fmt.Errorf("option %s=%s: %w: %s", name, value, ErrInvalid, l.text(what, show))
	}
	*to = v
	return nil
}

// OpenFunc opens a device for a back end. o is never nil.
type OpenFunc func(ctx context.Context, a Address, o *Options) (Device, error)

var registry struct {
	sync.RWMutex
	open  map[string]OpenFunc
	check map[string]func(Address) error
	list  map[string]listFunc
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

// RegisterCheck adds what CheckAddress asks about addresses of a scheme: the
// error that opening would return without looking for a device. Back ends call it
// from init.
func RegisterCheck(scheme string, check func(Address) error) {
	registry.Lock()
	defer registry.Unlock()
	if registry.check == nil {
		registry.check = make(map[string]func(Address) error)
	}
	registry.check[scheme] = check
}

// CheckAddress reports whether an address makes sense, without opening a device:
// ErrScheme, ErrOption or ErrInvalid if it does not, as Open says it. Whether there
// is such a device, and it takes such options, shows when it is opened. For "env:" it asks about the
// address that the environment has.
func CheckAddress(address string) error {
	a, err := resolve(address)
	if err != nil {
		return err
	}
	registry.RLock()
	_, known := registry.open[a.Scheme]
	check := registry.check[a.Scheme]
	registry.RUnlock()
	switch {
	case !known:
		return unknownScheme(a)
	case check != nil:
		return check(a)
	}
	return nil
}

func unknownScheme(a Address) error {
	return fmt.Errorf("scheme %q is not one of %s: %w", a.Scheme, strings.Join(Schemes(), ", "), ErrScheme)
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
// means the defaults. A context that has ended opens nothing: ErrWithdrawn. It
// returns ErrScheme if there is none, ErrOption for an option the back end does
// not know, and whatever the back end returns. The caller knows the address, so
// errors do not repeat it.
func Open(ctx context.Context, address string, o *Options) (Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, &WithdrawnError{Cause: err}
	}
	a, err := resolve(address)
	if err != nil {
		return nil, err
	}
	registry.RLock()
	open := registry.open[a.Scheme]
	registry.RUnlock()
	if open == nil {
		return nil, unknownScheme(a)
	}
	if o == nil {
		o = &Options{}
	}
	return open(ctx, a, o)
}

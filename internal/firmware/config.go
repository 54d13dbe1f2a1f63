package firmware

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Config is the shape of a device. Zero fields take the firmware's defaults.
type Config struct {
	Channels, Managers, Islands int
	Microengines, Contexts      int
	Slots, Window               int
	Stack                       uint64        // bytes per context
	Engines                     int           // DMA threads beside the islands
	Runs                        int           // 1: entries of lists may be runs
	Eager                       int           // entries of an eager transfer; 0: there are none
	HostRings                   int           // 1: a host behind the bus may have rings in memory of its own
	Lone                        int           // 1: a device of one host has programs that may keep an island, as "lone.spin"
	Busy                        int           // one DMA piece of so many is refused for now; 0: none
	MHz                         int           // clock by which accesses to memory take their type's cycles; 0: they take none
	Beat                        time.Duration // whole milliseconds
	TargetTimeout               time.Duration
	Spin                        time.Duration // how long an idle island spins
	Memory                      [abi.MemoryCount]uint64
	Buffer                      uint64 // bytes of device memory for each target of a process; 0: as there is room
	LogFD                       int    // device log lines go to a duplicate of it; -1: nowhere
	// Bus carries the device, nil: host memory is this process's own. There
	// is one device on a bus at a time, and it is closed before the bus.
	Bus *Bus
	// Epoch of the first start; 0: 1. Each start after it has a higher one.
	Epoch uint32
	// Shared is a device whose hosts call Attach, so many at a time; each sees
	// the shape above. 0: it has one, which is this process or behind the bus.
	Shared int
}

// Limits of a device's shape, which nfc_config_check() of the firmware has as well.
const (
	partsMax   = 64 // microengines per island, and contexts of each
	processMin = 8  // that an island must have: the services are some
	stackMin   = 16 << 10
	stackMax   = 16 << 20
	beatMax    = time.Minute
	year       = 365 * 24 * time.Hour
	mhzMax     = 10_000
)

// Defaults of a device for zero fields of a Config.
const (
	defaultManagers = 8
	defaultIslands  = 1
	defaultParts    = 8
	defaultChannels = 1 << 16
)

// memoryNames are the options for the sizes of device memory.
var memoryNames = [abi.MemoryCount]string{abi.CLS: "cls", abi.CTM: "ctm", abi.IMEM: "imem", abi.EMEM: "emem"}

// counts are the options that count something, in the order of the documents.
func (c *Config) counts() []option[int] {
	return []option[int]{
		{"managers", &c.Managers, bridge.Limits[int]{Min: 1, Max: wire.MailboxesMax}},
		{"islands", &c.Islands, bridge.Limits[int]{Min: 1, Max: wire.IslandsMax}},
		{"microengines", &c.Microengines, bridge.Limits[int]{Min: 1, Max: partsMax}},
		{"contexts", &c.Contexts, bridge.Limits[int]{Min: 1, Max: partsMax}},
		{"channels", &c.Channels, bridge.Limits[int]{Min: abi.TargetFirst, Max: abi.ChannelsMax}},
		{"slots", &c.Slots, bridge.Limits[int]{Min: wire.SlotsMin, Max: wire.SlotsMax, Power: true}},
		{"window", &c.Window, bridge.Limits[int]{Min: 1, Max: wire.WindowMax, Power: true}},
		{"engines", &c.Engines, bridge.Limits[int]{Min: 0, Max: wire.IslandsMax}},
		{"runs", &c.Runs, bridge.Limits[int]{Min: 0, Max: 1}},
		{"eager", &c.Eager, bridge.Limits[int]{Min: 0, Max: wire.EagerEntries}},
		{"lone", &c.Lone, bridge.Limits[int]{Min: 0, Max: 1}},
		{"busy", &c.Busy, bridge.Limits[int]{Min: 0, Max: math.MaxInt32}},
		{"mhz", &c.MHz, bridge.Limits[int]{Min: 0, Max: mhzMax}},
	}
}

func (c *Config) sizes() []option[uint64] {
	all := []option[uint64]{{"stack", &c.Stack, bridge.Limits[uint64]{Min: stackMin, Max: stackMax}}}
	memory := bridge.Limits[uint64]{Min: abi.PageSize, Max: 1 << abi.MemoryShift, Step: abi.PageSize}
	all = append(all, option[uint64]{"buffer", &c.Buffer, memory})
	for kind, name := range memoryNames {
		all = append(all, option[uint64]{name, &c.Memory[kind], memory})
	}
	return all
}

func (c *Config) durations() []option[time.Duration] {
	return []option[time.Duration]{
		{"beat", &c.Beat, bridge.Limits[time.Duration]{Min: time.Millisecond, Max: beatMax, Step: time.Millisecond}},
		{"target-timeout", &c.TargetTimeout, bridge.Limits[time.Duration]{Max: year}},
		{"spin", &c.Spin, bridge.Limits[time.Duration]{Max: time.Second}},
	}
}

// option is the field of an option, and the values that it may have.
type option[T int | uint64 | time.Duration] struct {
	name   string
	to     *T
	limits bridge.Limits[T]
}

// Options lists the names that Parse reads.
func Options() []string {
	var c Config
	return slices.Concat(names(c.counts()), names(c.sizes()), names(c.durations()))
}

func names[T int | uint64 | time.Duration](all []option[T]) []string {
	var list []string
	for _, o := range all {
		list = append(list, o.name)
	}
	return list
}

// Parse reads the options of an address that shape a device; fields without their
// option stay as they are. Errors wrap bridge.ErrInvalid, name the options, and say
// what was given and what is allowed.
func (c *Config) Parse(a bridge.Address) error {
	for _, o := range c.counts() {
		if err := a.Count(o.name, o.to, o.limits); err != nil {
			return err
		}
	}
	for _, o := range c.sizes() {
		if err := a.Size(o.name, o.to, o.limits); err != nil {
			return err
		}
	}
	for _, o := range c.durations() {
		if err := a.Duration(o.name, o.to, o.limits); err != nil {
			return err
		}
	}
	return c.fits()
}

// fits checks what options must be to each other.
func (c *Config) fits() error {
	managers, islands := either(c.Managers, defaultManagers), either(c.Islands, defaultIslands)
	engines, contexts := either(c.Microengines, defaultParts), either(c.Contexts, defaultParts)
	channels := either(c.Channels, defaultChannels)
	switch {
	case managers%islands != 0:
		return fmt.Errorf("options managers=%d, islands=%d: %w: want as many managers for each island",
			managers, islands, bridge.ErrInvalid)
	case managers > channels:
		return fmt.Errorf("options managers=%d, channels=%d: %w: want a channel for each manager",
			managers, channels, bridge.ErrInvalid)
	case engines*contexts < processMin:
		return fmt.Errorf("options microengines=%d, contexts=%d: %w: want room for %d processes on an island",
			engines, contexts, bridge.ErrInvalid, processMin)
	}
	return nil
}

// either returns a value, or what stands for zero.
func either(value, standard int) int {
	if value == 0 {
		return standard
	}
	return value
}

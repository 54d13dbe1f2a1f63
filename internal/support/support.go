package support

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// BackEnd is a column of the table: what the scheme of an address opens.
type BackEnd struct {
	Scheme string
	Device string // where the device is
	Suite  string // the test of the conformance suite, as docs/semantics.md writes it
	Ran    string // on which hardware it has run
	Can    []Ability
}

// Ability is something that a device can do or cannot.
type Ability string

// The abilities in which back ends differ, as README names them.
const (
	Names     Ability = "two services by name: `Listen`, `Dial`"
	Moves     Ability = "ends of channels sent through channels: `SendChannel`"
	Gifts     Ability = "memory that goes from one service to another where it lies: `SendRegion`"
	Programs  Ability = "programs of your own: `Load`"
	Nodes     Ability = "channels to other nodes: `At`, `Fabric`"
	Import    Ability = "memory of another device: `Import`"
	Registers Ability = "registers and interrupts of a card: `pkg/nfcomms/admin`"
	Calls     Ability = "a question and its answer in one slot each: `Call`"
)

var abilities = []Ability{Names, Moves, Gifts, Programs, Nodes, Calls, Import, Registers}

// BackEnds is the table.
var BackEnds = []BackEnd{
	{
		Scheme: "sim", Device: "in this process", Suite: "internal/sim:TestConformance",
		Ran: "a simulated bus", Can: []Ability{Names, Moves, Gifts, Programs, Nodes, Calls},
	},
	{
		Scheme: "shm", Device: "in `nfsim --shm`, for many processes", Suite: "cmd/nfsim:TestSharedConformance",
		Ran: "a simulated bus", Can: []Ability{Names, Moves, Gifts, Programs, Nodes, Calls},
	},
	{
		Scheme: "dev", Device: "a card behind the kernel module", Suite: "internal/kdev:TestConformance",
		Ran: "an emulated card in virtual machines, no real one", Can: []Ability{Programs, Calls, Import, Registers},
	},
	{
		Scheme: "vfio-user", Device: "a card that `nfsim` plays, without the module", Suite: "cmd/nfsim:TestFunctionConformance",
		Ran: "an emulated card", Can: []Ability{Names, Moves, Programs, Calls},
	},
	{
		Scheme: "vfio", Device: "a card by the kernel's VFIO, without the module", Suite: "internal/vmtest/functions:TestConformance",
		Ran: "an emulated card in a virtual machine, behind an emulated IOMMU", Can: []Ability{Names, Moves, Programs, Calls},
	},
}

// Markdown returns the table as README shows it.
func Markdown() string {
	var b strings.Builder
	row := func(head string, cell func(BackEnd) string) {
		fmt.Fprintf(&b, "| %s |", head)
		for _, e := range BackEnds {
			fmt.Fprintf(&b, " %s |", cell(e))
		}
		b.WriteByte('\n')
	}
	row("", func(e BackEnd) string { return "`" + e.Scheme + ":`" })
	b.WriteString("|---|" + strings.Repeat("---|", len(BackEnds)) + "\n")
	row("the device", func(e BackEnd) string { return e.Device })
	row("every rule of the contract, tested", func(e BackEnd) string { return mark(e.Suite != "") })
	for _, a := range abilities {
		row(string(a), func(e BackEnd) string { return mark(slices.Contains(e.Can, a)) })
	}
	row("has run on", func(e BackEnd) string { return e.Ran })
	return b.String()
}

func mark(yes bool) string {
	if yes {
		return "yes"
	}
	return "–"
}

// Differences lists the abilities in which a device differs from the row of its back end. A device
// that can reach other nodes must be one of several.
func Differences(ctx context.Context, scheme string, dev bridge.Device) (found []string) {
	i := slices.IndexFunc(BackEnds, func(e BackEnd) bool { return e.Scheme == scheme })
	if i < 0 {
		return []string{"no row of " + scheme}
	}
	for _, a := range abilities {
		if want, has := slices.Contains(BackEnds[i].Can, a), can(ctx, dev, a); has != want {
			found = append(found, fmt.Sprintf("%s: %s: %t, the table says %t", scheme, a, has, want))
		}
	}
	return found
}

// can reports whether a device has an ability. It calls what may still return ErrNotSupported.
func can(ctx context.Context, dev bridge.Device, a Ability) bool {
	switch a {
	case Moves:
		return carries(ctx, dev, func(m bridge.Mover, ch bridge.Channel) error { return m.SendChannel(ctx, ch) })
	case Gifts:
		return carries(ctx, dev, func(m bridge.Mover, _ bridge.Channel) error { return m.SendRegion(ctx, nil) })
	case Names:
		l, is := dev.(bridge.HostListener)
		if !is {
			return false
		}
		on, err := l.Listen(ctx, bridge.ListenOptions{Name: "support"})
		return err == nil && on.Close() == nil
	case Programs:
		_, err := dev.Load(ctx, []byte("no image"))
		return !errors.Is(err, bridge.ErrNotSupported)
	case Nodes:
		n, is := dev.(bridge.FabricNode)
		return is && n.Fabric() != nil
	case Calls:
		return calls(ctx, dev)
	case Import:
		_, is := dev.(bridge.Importer)
		return is
	case Registers:
		_, is := dev.(bridge.RegisterAccess)
		return is
	}
	return false
}

// calls reports whether an answer commits a question. It asks the loopback service.
func calls(ctx context.Context, dev bridge.Device) bool {
	ch, err := dev.Subscribe(ctx, abi.TargetLoopback)
	if err != nil {
		return false
	}
	c, is := ch.(bridge.Caller)
	if is {
		a, err := c.Call(ctx, nil, nil)
		is = err == nil && !a.Message
	}
	return ch.Close() == nil && is
}

// carries reports whether channels of a device carry what send sends through one: then the channel itself,
// or no region, is an argument that makes no sense.
func carries(ctx context.Context, dev bridge.Device, send func(bridge.Mover, bridge.Channel) error) bool {
	l, is := dev.(bridge.HostListener)
	if !is {
		return false
	}
	on, err := l.Listen(ctx, bridge.ListenOptions{})
	if err != nil {
		return false
	}
	defer on.Close()
	ch, err := dev.Subscribe(ctx, on.Target())
	if err != nil {
		return false
	}
	defer ch.Close()
	m, is := ch.(bridge.Mover)
	return is && errors.Is(send(m, ch), bridge.ErrInvalid)
}

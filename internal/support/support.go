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
	Programs  Ability = "programs of your own: `Load`"
	Nodes     Ability = "channels to other nodes: `At`, `Fabric`"
	Import    Ability = "memory of another device: `Import`"
	Registers Ability = "registers and interrupts of a card: `pkg/nfcomms/admin`"
)

var abilities = []Ability{Names, Programs, Nodes, Import, Registers}

// BackEnds is the table.
var BackEnds = []BackEnd{
	{
		Scheme: "sim", Device: "in this process", Suite: "internal/sim:TestConformance",
		Ran: "a simulated bus", Can: []Ability{Names, Programs, Nodes},
	},
	{
		Scheme: "shm", Device: "in `nfsim --shm`, for many processes", Suite: "cmd/nfsim:TestSharedConformance",
		Ran: "a simulated bus", Can: []Ability{Names, Programs, Nodes},
	},
	{
		Scheme: "dev", Device: "a card behind the kernel module", Suite: "internal/kdev:TestConformance",
		Ran: "an emulated card in virtual machines, no real one", Can: []Ability{Programs, Import, Registers},
	},
	{
		Scheme: "vfio-user", Device: "a card without the module", Suite: "cmd/nfsim:TestFunctionConformance",
		Ran: "an emulated card; one by `/dev/vfio` is not built", Can: []Ability{Names, Programs},
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
	case Import:
		_, is := dev.(bridge.Importer)
		return is
	case Registers:
		_, is := dev.(bridge.RegisterAccess)
		return is
	}
	return false
}

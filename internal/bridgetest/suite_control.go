package bridgetest

import (
	"context"
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

var controlCases = []testCase{
	{"control/info", controlInfo},
	{"control/programs", controlPrograms},
	{"control/memory", controlMemory},
	{"control/start-errors", startErrors},
	{"control/contexts", startTooMany},
	{"control/stop", stopErrors},
	{"control/stop-offering", stopOffering},
	{"control/running", running},
	{"control/load-errors", loadErrors},
	{"control/several-devices", severalDevices},
}

// controlInfo: the device has the shape it was opened with.
func controlInfo(e *Env) {
	i := e.device("managers=4&islands=2&channels=300&slots=32&window=8").Info()
	require.Equal(e, 4, i.Mailboxes)
	require.Equal(e, 2, i.Islands)
	require.Equal(e, 300, i.Channels)
	require.Equal(e, 32, i.Slots)
	require.Equal(e, 8, i.Window)
	require.Equal(e, abi.Major, i.Major)
	require.Positive(e, i.ReadManagers)
	require.Positive(e, i.WriteManagers)
	require.Positive(e, i.Contexts)
	require.Positive(e, i.Beat)
	require.Greater(e, i.MaxTransfer, uint64(5<<30))
	require.NotEmpty(e, i.Driver)
	require.NotEmpty(e, i.Address)
}

func controlPrograms(e *Env) {
	names, err := e.device("").Programs(e.Ctx())
	require.NoError(e, err)
	require.Subset(e, names, []string{"loopback", "hold", "sink", "source", "gate", "expect", "asked"})
}

// controlMemory: the four types are there, do not overlap, and EMEM has the
// size asked for.
func controlMemory(e *Env) {
	dev := e.device("emem=32MiB")
	for kind := range abi.MemoryCount {
		m, err := dev.Memory(e.Ctx(), kind)
		require.NoError(e, err)
		require.Equal(e, uint64(kind), m.Base>>abi.MemoryShift)
		require.Positive(e, m.Size)
		require.LessOrEqual(e, m.Free, m.Size)
	}
	for _, kind := range []int{-1, abi.MemoryCount, 1 << 40} {
		_, err := dev.Memory(e.Ctx(), kind)
		require.ErrorIs(e, err, bridge.ErrInvalid, "memory type %d", kind)
	}
}

// startErrors: every way to ask for a process that cannot be.
func startErrors(e *Env) {
	dev := e.device("channels=100")
	held := e.Start(dev, "hold", 4)
	for _, c := range []struct {
		name    string
		program bridge.Program
		want    []error
	}{
		{"no such program", bridge.Program{Name: "nonesuch", Targets: 1}, []error{bridge.ErrNoProgram}},
		{"no name", bridge.Program{Targets: 1}, []error{bridge.ErrNoProgram, bridge.ErrInvalid}},
		{"long name", bridge.Program{Name: strings.Repeat("x", 24), Targets: 1},
			[]error{bridge.ErrNoProgram, bridge.ErrInvalid}},
		{"name with NUL", bridge.Program{Name: "hold\x00", Targets: 1},
			[]error{bridge.ErrNoProgram, bridge.ErrInvalid}},
		{"no targets", bridge.Program{Name: "hold"}, []error{bridge.ErrInvalid}},
		{"negative targets", bridge.Program{Name: "hold", Targets: -1}, []error{bridge.ErrInvalid}},
		{"more targets than channels", bridge.Program{Name: "hold", Targets: 101},
			[]error{bridge.ErrInvalid, bridge.ErrNoMemory}},
		{"beyond the last channel", bridge.Program{Name: "hold", First: 99, Targets: 2}, []error{bridge.ErrInvalid}},
		{"service targets", bridge.Program{Name: "hold", First: 1, Targets: 1},
			[]error{bridge.ErrInvalid, bridge.ErrBusy}},
		{"held targets", bridge.Program{Name: "hold", First: held.First + 3, Targets: 2}, []error{bridge.ErrBusy}},
	} {
		_, err := dev.Start(e.Ctx(), c.program)
		require.Error(e, err, c.name)
		requireOneOf(e, err, c.want...)
	}
	e.Echo(e.Ports(dev, "loopback", 1)[0], []byte("and still works"))
}

// startTooMany: a device out of contexts says so, and takes more processes when
// some have ended.
func startTooMany(e *Env) {
	dev := e.device("")
	var started []bridge.Process
	for {
		p, err := dev.Start(e.Ctx(), bridge.Program{Name: "hold", Targets: 1})
		if err != nil {
			require.ErrorIs(e, err, bridge.ErrNoMemory)
			break
		}
		started = append(started, p)
		require.LessOrEqual(e, len(started), dev.Info().Contexts)
	}
	require.NotEmpty(e, started)
	for _, p := range started {
		require.NoError(e, dev.Stop(e.Ctx(), p.ID))
	}
	e.Echo(e.Ports(dev, "loopback", 1)[0], []byte("room again"))
}

func stopErrors(e *Env) {
	dev := e.device("")
	require.ErrorIs(e, dev.Stop(e.Ctx(), 0), bridge.ErrInvalid)
	require.ErrorIs(e, dev.Stop(e.Ctx(), 1<<40), bridge.ErrInvalid)
	p := e.Start(dev, "loopback", 1)
	require.NoError(e, dev.Stop(e.Ctx(), p.ID))
	require.ErrorIs(e, dev.Stop(e.Ctx(), p.ID), bridge.ErrInvalid)
}

// stopOffering: a process that offers what nobody receives ends when it is stopped, in
// whichever mailbox it takes its offer back.
func stopOffering(e *Env) {
	const mailboxes = 4
	dev := e.device("managers=4")
	for range mailboxes {
		p := e.Start(dev, "loopback", 1)
		ch := e.Subscribe(dev, p.First)
		require.NoError(e, ch.Send(e.Ctx(), []byte("nobody takes the echo")))
		_, err := ch.Next(e.Ctx())
		require.NoError(e, err)
		require.NoError(e, dev.Stop(context.Background(), p.ID), "target %v", p.First)
	}
}

// running: a process runs from Start until it has returned.
func running(e *Env) {
	dev := e.device("")
	first, second := e.Start(dev, "loopback", 1), e.Start(dev, "hold", 1)
	require.NoError(e, dev.Stop(e.Ctx(), first.ID))
	for id, want := range map[bridge.ProcessID]bool{first.ID: false, second.ID: true, 0: false, 1 << 40: false} {
		runs, err := dev.Running(e.Ctx(), id)
		require.NoError(e, err)
		require.Equal(e, want, runs, "process %d", id)
	}
}

// loadErrors: images that are none, or of another ABI, or a device that cannot.
func loadErrors(e *Env) {
	dev := e.device("")
	want := []error{bridge.ErrNotSupported}
	if dev.Info().CanLoad {
		want = []error{bridge.ErrABI, bridge.ErrInvalid}
	}
	for _, image := range [][]byte{nil, {}, []byte("x"), []byte("\x7fELF"), make([]byte, 100_000)} {
		_, err := dev.Load(e.Ctx(), image)
		require.Error(e, err, "%d bytes", len(image))
		requireOneOf(e, err, want...)
	}
	if dev.Info().CanLoad {
		e.loadAliens(dev)
		names, err := dev.Programs(e.Ctx())
		require.NoError(e, err)
		require.NotContains(e, names, "alien")
	}
	e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("unharmed"))
}

// loadAliens loads the alien image for each machine. One of them is the device's, which need not be
// the one that this runs on.
func (e *Env) loadAliens(dev bridge.Device) {
	known := 0
	for _, machine := range machines {
		_, err := dev.Load(e.Ctx(), alienImage(machine))
		requireOneOf(e, err, bridge.ErrABI, bridge.ErrInvalid)
		if errors.Is(err, bridge.ErrABI) {
			known++
		}
	}
	require.Equal(e, 1, known, "machines whose images the device looks into")
}

// severalDevices: devices do not know of each other.
func severalDevices(e *Env) {
	one, two := e.device(""), e.device("managers=1")
	a, b := e.Subscribe(one, abi.TargetLoopback), e.Subscribe(two, abi.TargetLoopback)
	e.send(a, []byte("one"))
	e.send(b, []byte("two"))
	require.Equal(e, "one", string(e.receive(a)))
	require.Equal(e, "two", string(e.receive(b)))
	e.send(b, []byte("across"))
	require.NoError(e, one.Reset(e.Ctx()))
	require.Equal(e, "across", string(e.receive(b)))
	require.ErrorIs(e, a.Send(e.Ctx(), nil), bridge.ErrDeviceLost)
	require.NoError(e, one.Close())
	e.Echo(b, []byte("alone"))
}

package bridgetest

import (
	"context"
	_ "embed" // the program below
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

//go:embed guest/guest.c
var guestSource []byte

// guestsFunc opens two hosts of one device: the one that listens, with the options that say which
// hosts may connect, and the one whose processes connect. They may be one. The suite closes them.
type guestsFunc func(t *testing.T, options string) (listens, runs bridge.Device, o bridge.ListenOptions)

// guestCases are the groups of the suite that apply to a channel whose other end is a process,
// opened by either side.
var guestCases = []string{"direct", "cancel", "transfer", "posted", "begun", "call", "refusal", "close", "try", "next", "extended", "ledger"}

// notForGuests are the cases that are about subscribing.
var notForGuests = []string{
	"close/again-after-its-process", // starts a program with targets of its choice, which subscribe
}

// guestsMost is how many channels the processes of one host may open to another.
const guestsMost = 16

// RunGuests runs the cases of the suite that are about channels, but for those to skip, over
// channels that processes open to the host. The image is of GuestSource.
func RunGuests(t *testing.T, image []byte, open guestsFunc, skip ...string) {
	for _, c := range cases {
		group, _, _ := strings.Cut(c.name, "/")
		if !slices.Contains(guestCases, group) || slices.Contains(notForGuests, c.name) || slices.Contains(skip, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			e := NewEnv(t)
			e.guests = &guests{of: make(map[bridge.Device]*visited)}
			e.open = func(t *testing.T, options string) bridge.Device {
				return e.guests.open(t, image, options, open)
			}
			c.run(e)
		})
	}
}

// GuestSource returns the programs of the firmware, from its folder, as programs that open
// their channels.
func GuestSource(t *testing.T, firmware string) fs.FS {
	source := fstest.MapFS{"guest.c": {Data: guestSource}}
	for from, to := range map[string]string{
		"nfc_fw.h": "nfc_fw.h", "nfc_abi.h": "nfc_abi.h", "programs/programs.h": "programs/programs.h",
		"programs/bulk.c": "programs/bulk.h", "programs/check.c": "programs/check.h", "programs/common.c": "programs/common.h",
	} {
		data, err := os.ReadFile(firmware + "/" + from)
		require.NoError(t, err)
		source[to] = &fstest.MapFile{Data: data}
	}
	return source
}

// guests are the devices of a case.
type guests struct {
	of map[bridge.Device]*visited
}

// visited is a host that listens, and whose processes connect to it.
type visited struct {
	runs   bridge.Device
	l      bridge.Listener
	target bridge.Target // as processes reach it; what is zero in an id is free for a number
	mu     sync.Mutex
	first  []bridge.Target // of the processes, by the number that they were given

	accepting sync.Mutex
	came      map[bridge.Target]bridge.Channel
	loop      bool // something stands for the service
}

func (g *guests) open(t *testing.T, image []byte, options string, open guestsFunc) bridge.Device {
	listens, runs, o := open(t, options)
	l, err := listens.(bridge.HostListener).Listen(t.Context(), o)
	require.NoError(t, err)
	_, err = runs.Load(t.Context(), image)
	require.NoError(t, err)
	target := l.Target()
	if at := listens.Info().Node; at != runs.Info().Node {
		target = bridge.At(at, target)
	}
	v := &visited{runs: runs, l: l, target: target, came: make(map[bridge.Target]bridge.Channel)}
	meets := listens
	if target != l.Target() { // the host comes to the processes: its channels are there
		meets = runs
		if f, ok := listens.(bridge.FabricNode); ok {
			meets, err = f.Fabric().Device(t.Context(), runs.Info().Node)
			require.NoError(t, err)
		}
	}
	for _, other := range []bridge.Device{listens, runs} {
		if other != meets {
			t.Cleanup(func() { require.NoError(t, other.Close()) })
		}
	}
	g.of[meets] = v
	return meets
}

// start runs the program of that name that connects.
func (v *visited) start(ctx context.Context, name string, n int) (bridge.Process, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	number := uint64(len(v.first))
	p, err := v.runs.Start(ctx, bridge.Program{Name: "guest." + name, Targets: n, Argument: uint64(v.target) | number&0xff<<24 | number>>8<<56})
	v.first = append(v.first, p.First)
	return p, err
}

// channel accepts until what stands for a target has connected. One call at a time accepts.
func (v *visited) channel(ctx context.Context, target bridge.Target) (bridge.Channel, error) {
	if target == abi.TargetLoopback && !v.loop {
		v.loop = true
		if _, err := v.start(ctx, "loopback", 1); err != nil {
			return nil, err
		}
		v.first[len(v.first)-1] = target
	}
	v.accepting.Lock()
	defer v.accepting.Unlock()
	for v.came[target] == nil {
		ch, err := v.l.Accept(ctx)
		if err != nil {
			return nil, err
		}
		var hello [abi.PayloadSize]byte
		_, err = ch.Receive(ctx, hello[:])
		if errors.Is(err, bridge.ErrClosed) { // by a process that was stopped before it said whose it is
			err = ch.Close()
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		number, port := binary.LittleEndian.Uint64(hello[:]), binary.LittleEndian.Uint64(hello[8:])
		v.mu.Lock()
		v.came[v.first[number]+bridge.Target(port)] = ch
		v.mu.Unlock()
	}
	ch := v.came[target]
	delete(v.came, target)
	return ch, nil
}

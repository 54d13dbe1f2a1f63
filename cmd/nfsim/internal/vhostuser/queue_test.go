package vhostuser_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostuser"
)

// Of conditions that are polled; a watchdog.
const (
	patience = time.Minute
	tick     = time.Millisecond
)

// serverOf makes a server whose client has gone.
func serverOf(t *testing.T, dev Device) *Conn {
	client, server, err := vfioclient.Pair()
	require.NoError(t, err)
	require.NoError(t, client.Close())
	return NewConn(server, dev, slog.New(slog.DiscardHandler))
}

// TestChains spreads an operation over descriptors.
func TestChains(t *testing.T) {
	r := ready(t)
	r.dev.poke(2, 0, []byte("0123456789"), nil)
	at, b := r.Buffer(Commands, 2)
	copy(b, Operation(Load, 2, 10, 0, nil))
	r.Describe(Commands, 3, at, 4, Next, 7)
	r.Describe(Commands, 7, at+4, 12, Next, 1)
	r.Describe(Commands, 1, at+100, 3, Write|Next, 0)
	r.Describe(Commands, 0, at+200, 20, Write, 0)
	r.Offer(Commands, 3)
	require.NoError(t, r.Kick(Commands))
	head, n, err := r.Take(Commands)
	require.NoError(t, err)
	require.Equal(t, []uint32{3, 10}, []uint32{head, n})
	require.Equal(t, "012", string(b[100:103]))
	require.Equal(t, "3456789", string(b[200:207]))
}

// TestMalformedOperations ends connections whose operations make no sense.
func TestMalformedOperations(t *testing.T) {
	for name, c := range map[string]struct {
		operation []byte
		room      int
	}{
		"short":          {make([]byte, 15), 0},
		"operation 0":    {Operation(0, 0, 4, 0, nil), 4},
		"an interrupt":   {Operation(MSI, 0, 4, 0, make([]byte, 4)), 4},
		"nothing":        {Operation(Load, 0, 0, 0, nil), 4},
		"too much":       {Operation(Load, 0, 1<<30, 0, nil), 4},
		"no room":        {Operation(Load, 0, 8, 0, nil), 4},
		"no data":        {Operation(Store, 0, 8, 0, make([]byte, 4)), 0},
		"nothing to set": {Operation(Set, 0, 8, 0, nil), 0},
		"BAR 6":          {Operation(Load, 6, 4, 0, nil), 4},
		"BAR 4":          {Operation(Load, 4, 4, 0, nil), 4},
		"config space":   {Operation(ConfigRead, 0, 4, 4094, nil), 4},
		"wraps":          {Operation(Load, 0, 4, ^uint64(1), nil), 4},
		"set outside":    {Operation(Set, 0, 1<<20, 0, []byte{1}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			require.NoError(t, r.Setup())
			_, err := r.Do(c.operation, c.room)
			require.Error(t, err)
			r.refused(t)
		})
	}
}

// TestMalformedChains ends connections whose queues make no sense.
func TestMalformedChains(t *testing.T) {
	for name, spoil := range map[string]func(r *rig, at uint64){
		"loop":         func(r *rig, at uint64) { r.Describe(Commands, 0, at, 4, Next, 0); r.Offer(Commands, 0) },
		"no such":      func(r *rig, _ uint64) { r.Offer(Commands, QueueSize) },
		"next none":    func(r *rig, at uint64) { r.Describe(Commands, 0, at, 4, Next, 9); r.Offer(Commands, 0) },
		"indirect":     func(r *rig, at uint64) { r.Describe(Commands, 0, at, 4, 4, 0); r.Offer(Commands, 0) },
		"empty":        func(r *rig, at uint64) { r.Describe(Commands, 0, at, 0, 0, 0); r.Offer(Commands, 0) },
		"no memory":    func(r *rig, _ uint64) { r.Describe(Commands, 0, 0, 16, 0, 0); r.Offer(Commands, 0) },
		"past the end": func(r *rig, _ uint64) { r.Describe(Commands, 0, Guest+MemorySize-8, 16, 0, 0); r.Offer(Commands, 0) },
		"wraps":        func(r *rig, _ uint64) { r.Describe(Commands, 0, ^uint64(0), 16, 0, 0); r.Offer(Commands, 0) },
		"huge":         func(r *rig, at uint64) { r.Describe(Commands, 0, at, 1<<31, 0, 0); r.Offer(Commands, 0) },
		"room nowhere": func(r *rig, _ uint64) { r.Describe(Commands, 0, 64, 16, Write, 0); r.Offer(Commands, 0) },
		"read after write": func(r *rig, at uint64) {
			r.Describe(Commands, 0, at, 16, Write|Next, 1)
			r.Describe(Commands, 1, at, 16, 0, 0)
			r.Offer(Commands, 0)
		},
		"more than the queue": func(r *rig, _ uint64) { r.Publish(Commands, QueueSize+1) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			require.NoError(t, r.Setup())
			at, _ := r.Buffer(Commands, 0)
			spoil(r, at)
			require.Error(t, r.Kick(Commands))
			r.refused(t)
		})
	}
}

// TestNoRoomForAnInterrupt is found out when there is one.
func TestNoRoomForAnInterrupt(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.Setup())
	require.NoError(t, r.Write(ConfigWrite, 0, 4, []byte{2, 0}))
	r.enable(t, 0, 5)
	at, _ := r.Buffer(Interrupts, 0)
	r.Describe(Interrupts, 0, at, 8, Write, 0)
	r.Offer(Interrupts, 0)
	r.dev.fire(0)
	r.refused(t)
}

// TestMemoryThatIsCutOff takes the file behind guest memory away.
func TestMemoryThatIsCutOff(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.Setup())
	r.cut(t)
	require.Error(t, r.Kick(Commands))
	r.refused(t)
}

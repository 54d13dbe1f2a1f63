package over

import (
	"context"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/stamp"
)

// Bounds of tracers.
const (
	MaxTracers = 8       // of a device
	MaxEvery   = 1 << 30 // one call in so many is measured
	MaxKeep    = 1 << 16 // calls that a tracer holds
)

// Of returns what there is of a *nfcomms.Device. Package nfcomms sets it when it is initialized.
var Of func(device any) Device

// Channel returns the channel of the back end that a *nfcomms.Channel has.
var Channel func(ch any) bridge.Channel

// Device is a nfcomms.Device as the packages beneath it reach it.
type Device struct {
	// Bridge is the device of the back end.
	Bridge bridge.Device
	// Address is the text that opened it.
	Address string
	// Fail returns an error with the context of an operation; nil of nil.
	Fail func(op string, err error) error
	// Programs, Running, Memory and Channels are what package admin has of a device; Channels returns a
	// []*nfcomms.Channel.
	Programs func(ctx context.Context) ([]string, error)
	Running  func(ctx context.Context, id bridge.ProcessID) (bool, error)
	Memory   func(ctx context.Context, kind int) (bridge.Memory, error)
	Channels func() any
	// Fabric is the fabric that it is a node of, with the context of its errors; nil if there is none.
	Fabric bridge.Fabric
	// Node returns the *nfcomms.Device of another node.
	Node func(ctx context.Context, n abi.Node) (any, error)
	// Trace begins to measure one call in so many, and holds at most keep; 0 means the default.
	// caller may be nil; of the context of each call it returns the value that Call.Caller holds.
	Trace func(ctx context.Context, every, keep int, caller func(context.Context) any) (Tracer, error)
}

// Tracer measures calls until it is closed.
type Tracer interface {
	// Take returns the calls that were measured since the last Take.
	Take(ctx context.Context) Trace
	// Close ends the tracer.
	Close()
}

// Trace is what a tracer measured. The fields are documented in package trace.
type Trace struct {
	Calls       []Call
	Lost, Wrong uint64
	ClockKnown  bool
	ClockError  time.Duration
}

// Call is one call that was measured.
type Call struct {
	Op                string
	Receive, Transfer bool
	Target            bridge.Target
	Start             time.Time
	Bytes             int
	Whole             time.Duration
	Layers            [stamp.Layers]time.Duration
	Caller            any
}

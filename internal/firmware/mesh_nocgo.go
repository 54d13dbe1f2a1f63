//go:build !cgo

package firmware

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Mesh is nodes of a fabric; this build has none.
type Mesh struct{}

// NewMesh returns abi.ErrNotSupported.
func NewMesh(MeshConfig) (*Mesh, abi.Status) { return nil, abi.ErrNotSupported }

// Close does nothing.
func (*Mesh) Close() {}

// Step does nothing.
func (*Mesh) Step(_, _ time.Duration) {}

// Send returns false.
func (*Mesh) Send(int, MeshLoad) bool { return false }

// Done returns true.
func (*Mesh) Done(int) bool { return true }

// Pings returns nil.
func (*Mesh) Pings(_, _ int) []time.Duration { return nil }

// Cut does nothing.
func (*Mesh) Cut(_, _ int, _ bool) {}

// Kill does nothing.
func (*Mesh) Kill(int, bool, bool) {}

// Break does nothing.
func (*Mesh) Break(_, _ int, _ MeshFaults) {}

// Test does nothing.
func (*Mesh) Test(_, _ int, _ uint32) {}

// Sense does nothing.
func (*Mesh) Sense(int, abi.Diagnostic) {}

// Host does nothing.
func (*Mesh) Host(int) {}

// Read returns the zero value.
func (*Mesh) Read(int) MeshState { return MeshState{} }

// View returns nil.
func (*Mesh) View(int) []abi.Diagnostic { return nil }

// Route finds none.
func (*Mesh) Route(_, _, _, _ int, _ bool) (link int, detours, ok bool) { return 0, false, false }

// Join does nothing.
func (*Mesh) Join(_, _ int, _ bool) {}

// Outgoing returns nil.
func (*Mesh) Outgoing(_, _ int) []byte { return nil }

// Sent does nothing.
func (*Mesh) Sent(_, _, _ int) {}

// Incoming returns nil.
func (*Mesh) Incoming(_, _ int) []byte { return nil }

// Came does nothing.
func (*Mesh) Came(_, _, _ int) {}

// Event returns -1.
func (*Mesh) Event(_, _ int) int { return -1 }

// Window returns abi.ErrNotSupported.
func (*Mesh) Window(int, []byte, bool, bool) (uint64, abi.Status) { return 0, abi.ErrNotSupported }

// Revoke returns false.
func (*Mesh) Revoke(int, uint64) bool { return false }

// MeshOp is a put or a get; this build has none.
type MeshOp struct{}

// Begin returns nil.
func (*Mesh) Begin(int, MeshAccess) *MeshOp { return nil }

// Look returns true.
func (*MeshOp) Look(time.Duration) bool { return true }

// Park returns nil.
func (*MeshOp) Park() <-chan struct{} { return nil }

// Withdraw does nothing.
func (*MeshOp) Withdraw() {}

// Finish returns abi.ErrNotSupported.
func (*MeshOp) Finish() abi.Status { return abi.ErrNotSupported }

// Wakes returns -1.
func (*Mesh) Wakes() int { return -1 }

// WakeEnded does nothing.
func (*Mesh) WakeEnded() {}

// CloseOps does nothing.
func (*Mesh) CloseOps() {}

// MeasureLookups measures nothing.
func MeasureLookups(Lookup, int, int) (ns, hits float64) { return 0, 0 }

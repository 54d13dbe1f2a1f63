package admin

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
)

// Types of the bridge contract that administrators see.
type (
	// Found is a device that can be opened here, or one that cannot with the reason.
	Found = bridge.Found
	// Memory describes a device memory type.
	Memory = bridge.Memory
)

// Targets of a device's own processes, beside [nfcomms.Loopback].
const (
	// Log takes log lines and gives the device's own.
	Log nfcomms.Target = abi.TargetLog
	// Telemetry takes a uint32 page number and gives seven uint64 counters.
	Telemetry nfcomms.Target = abi.TargetTelemetry
	// Time takes the host's clock and gives it back with the device's.
	Time nfcomms.Target = abi.TargetTime
)

// Memory types of a device, smallest and fastest first.
const (
	CLS  = abi.CLS  // cluster local scratch
	CTM  = abi.CTM  // cluster target memory
	IMEM = abi.IMEM // internal memory
	EMEM = abi.EMEM // external memory
)

// Devices lists the devices on this host that can be opened, and those that cannot,
// with the reason: "sim:", and every /dev/nfcommsN or what is missing for one. It
// disturbs none of them, but opens a device node for a moment to ask how it is. A
// reason may no longer hold when the device is opened, and another may.
func Devices(ctx context.Context) ([]Found, error) {
	found, err := bridge.Devices(ctx)
	if err != nil {
		return nil, &nfcomms.OpError{Op: "list devices", Err: err}
	}
	return found, nil
}

// Programs lists the names that Start of a device accepts.
func Programs(ctx context.Context, dev *nfcomms.Device) ([]string, error) {
	return over.Of(dev).Programs(ctx)
}

// Running reports whether a process that Start returned has not returned yet.
func Running(ctx context.Context, dev *nfcomms.Device, id nfcomms.ProcessID) (bool, error) {
	return over.Of(dev).Running(ctx, id)
}

// MemoryOf describes one of the memory types CLS, CTM, IMEM and EMEM of a device. ErrInvalid
// for another kind.
func MemoryOf(ctx context.Context, dev *nfcomms.Device, kind int) (Memory, error) {
	return over.Of(dev).Memory(ctx, kind)
}

// Channels returns the channels of a device that are open now, in no order: those that were
// subscribed and not closed since. It slows no message down. A reset that succeeds
// closes all channels of the time before it, and so does Close of the device.
func Channels(dev *nfcomms.Device) []*nfcomms.Channel {
	return over.Of(dev).Channels().([]*nfcomms.Channel)
}

// Halves describes both directions of a channel as they are now. It slows no message down.
func Halves(ch *nfcomms.Channel) bridge.Both[bridge.Half] { return over.Channel(ch).Halves() }

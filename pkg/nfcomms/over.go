package nfcomms

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
)

func init() {
	over.Of = func(device any) over.Device { return device.(*Device).over() }
	over.Channel = func(ch any) bridge.Channel { return ch.(*Channel).ch }
}

// over is what the packages beneath this one have of the device.
func (d *Device) over() over.Device {
	return over.Device{
		Programs: d.programs,
		Running:  d.running,
		Memory:   d.memory,
		Channels: func() any { return d.channels() },
		Fabric:   d.fabric(),
		Node:     func(ctx context.Context, n abi.Node) (any, error) { return d.node(ctx, n) },
		Bridge:   d.dev,
		Address:  d.address,
		Fail:     func(op string, err error) error { return d.fail(op, 0, err) },
		Trace: func(ctx context.Context, every, keep int, caller func(context.Context) any) (over.Tracer, error) {
			t, err := d.trace(ctx, every, keep, caller)
			if err != nil {
				return nil, err
			}
			return t, nil
		},
	}
}

package plugin

import (
	"context"
	"errors"
	"io/fs"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Device is a device that containers can be given.
type Device struct {
	// Name is that of the daemon.
	Name string
	// Healthy is true if a container may be given it now.
	Healthy bool
	// Shares is how many clients it has room for; 0: it is given as a whole.
	Shares int
	// Info is the daemon's last report. It must not be changed.
	Info *nfcommsv1.Device
}

// Devices follows the devices of a daemon for a driver that is not the device plugin. It uses
// Client, Sockets, Shares, Grace and Log of the options.
type Devices struct{ p *plugin }

// NewDevices returns the devices of a daemon, none before [Devices.Follow] runs.
func NewDevices(o Options) *Devices { return &Devices{newPlugin(o)} }

// Follow keeps the devices as the daemon has them, until the context ends.
func (d *Devices) Follow(ctx context.Context) { d.p.follow(ctx) }

// Begun is closed once the daemon has listed its devices.
func (d *Devices) Begun() <-chan struct{} { return d.p.table.begun }

// List returns the devices by name, in order, and a channel that is closed with the next change.
func (d *Devices) List() (list []Device, changed <-chan struct{}) {
	offers, changed := d.p.table.list(func(*offer) bool { return true })
	for _, o := range offers {
		list = append(list, Device{Name: o.name, Healthy: o.healthy, Shares: o.shares, Info: o.info})
	}
	return list, changed
}

// Describe returns what a container needs for a device. One that is gone is [fs.ErrNotExist].
func (d *Devices) Describe(name string) (cdi.Device, error) {
	list, _ := d.List()
	for _, one := range list {
		if one.Name == name {
			return d.p.describe(name, one.Info.GetAddress())
		}
	}
	return cdi.Device{}, &fs.PathError{Op: "describe", Path: name, Err: fs.ErrNotExist}
}

// Reset resets a device through the daemon.
func (d *Devices) Reset(ctx context.Context, name string) error {
	_, err := d.p.Client.Devices.ResetDevice(ctx, &nfcommsv1.ResetDeviceRequest{Name: control.DeviceName(name)})
	return err
}

// Fabric returns the place of a device in its fabric, and how its links are; nil without a fabric.
// An error is for a device that did not answer before the context ended.
func (d *Devices) Fabric(ctx context.Context, name string) (*nfcommsv1.GetFabricResponse, error) {
	f, err := d.p.Client.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: control.DeviceName(name)})
	if err != nil {
		return nil, errors.Join(ctx.Err())
	}
	return f, nil
}

package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/nfcomms/nfcomms/internal/shmwire"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
)

const (
	// checkEvery is when places and sockets are looked at without an event.
	checkEvery = 10 * time.Second
	// lockEvery is when a lock that another process holds is tried again.
	lockEvery = 2 * time.Second
	// socketName is that of the driver's socket in its folder.
	socketName = "dra.sock"
)

// Run gives devices to claims until the context ends, or until an error that no retry mends.
func Run(ctx context.Context, o Options) error {
	of := o.Options
	of.CDI = "" // names of CDI are those of claims: one that all devices have could be used without a claim
	return run(ctx, o, plugin.NewDevices(of), sharer{shmwire.OpenShare, shmwire.CloseShare})
}

// run is Run with the devices of a daemon.
func run(ctx context.Context, o Options, devices daemon, by sharer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &driver{Options: o, devices: devices, sharer: by, fail: fail}
	if err := os.MkdirAll(o.State, 0o750); err != nil {
		return err
	}
	unlock, err := d.lock(ctx)
	if err != nil || unlock == nil {
		return err
	}
	defer unlock()
	if d.noted, err = openCheckpoint(filepath.Join(o.State, "checkpoint.json")); err != nil {
		return err
	}
	if err := errors.Join(d.sweep(), d.sweepShares(ctx)); err != nil {
		d.Log.Warn("specifications or shares of claims that ended are left", "reason", err)
	}
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { devices.Follow(ctx) })
	defer fail(nil)
	// It begins before the daemon answers: claims are given back without it.
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(Name), kubeletplugin.KubeClient(o.API), kubeletplugin.NodeName(o.Node),
		kubeletplugin.RegistrarDirectoryPath(o.Registry), kubeletplugin.PluginDataDirectoryPath(o.State), kubeletplugin.PluginSocket(socketName),
		kubeletplugin.GRPCInterceptor(d.registered))
	if err != nil {
		return err
	}
	defer d.Registered(false)
	defer helper.Stop()
	d.publish(ctx, helper)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// lock waits until no other driver uses the folder. It returns no function if the context ends before.
func (d *driver) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(d.State, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // which gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close() // the other error is the reason
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if !said {
			d.Log.Warn("another driver runs: one of them has to end", "lock", f.Name())
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, f.Close()
		}
	}
}

// publish keeps the slices as the devices are, until the context ends.
func (d *driver) publish(ctx context.Context, helper *kubeletplugin.Helper) {
	select {
	case <-d.devices.Begun(): // an empty list would take devices from the scheduler that are there
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	var last *resourceslice.DriverResources
	for {
		all, changed := d.sources(ctx)
		now := resources(d.Node, all, d.plain.Load(), d.Evict)
		if ctx.Err() == nil && (last == nil || !equality.Semantic.DeepEqual(*last, now)) {
			if err := helper.PublishResources(ctx, now); err != nil {
				d.fail(err)
			}
			last = &now
		}
		d.restore(ctx)
		select {
		case <-changed:
		case <-tick.C:
			d.check()
		case <-ctx.Done():
			return
		}
	}
}

// registered notes what the kubelet says of a registration on its way to the helper.
func (d *driver) registered(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if r, is := request.(*registerapi.RegistrationStatus); is {
		if r.GetPluginRegistered() {
			d.Log.Info("registered with the kubelet")
		} else {
			d.Log.Warn("not registered", "reason", r.GetError())
		}
		d.Registered(r.GetPluginRegistered())
	}
	return next(ctx, request)
}

// check ends the driver if one of its sockets was removed: the kubelet finds those of the next start.
func (d *driver) check() {
	for _, path := range []string{filepath.Join(d.State, socketName), filepath.Join(d.Registry, Name+"-reg.sock")} {
		if _, err := os.Lstat(path); err != nil {
			d.fail(fmt.Errorf("a socket was removed: start again: %w", err))
		}
	}
}

// HandleError notes errors of the background. Taints and parts that the API server does not know are
// left out from then on; the driver ends with what no retry mends.
func (d *driver) HandleError(_ context.Context, err error, message string) {
	var dropped *resourceslice.DroppedFieldsError
	switch {
	case errors.As(err, &dropped):
		if !d.plain.Swap(true) {
			d.Log.Warn("the API server has no taints or no capacities of devices: devices that are not healthy are not listed", "reason", err)
		}
	case errors.Is(err, kubeletplugin.ErrRecoverable):
		d.Log.Warn(message, "reason", err)
	default:
		d.fail(fmt.Errorf("%s: %w", message, err))
	}
}

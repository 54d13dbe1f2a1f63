package plugin

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// Options adjusts a plugin. Client is required.
type Options struct {
	// Client is a connection to the daemon, with the role viewer; with Reset it needs admin.
	Client *control.Client
	// Folder is that of the kubelet's plugins. Default: the kubelet's own.
	Folder string
	// Sockets are the folders below which sockets of shared devices may lie.
	Sockets []string
	// CDI is the folder for the specification, and has containers get devices by name. Empty: they
	// get nodes and mounts.
	CDI string
	// Shares is how many clients devices have room for.
	Shares Shares
	// Reset resets a device that is given as a whole before each start of its container.
	Reset bool
	// Grace is how long the daemon may be silent before all devices are unhealthy. Zero: no time.
	Grace time.Duration
	// Log receives a line for each event.
	Log *slog.Logger
	// Registered is called whenever the kubelet has both resources, and whenever it has not.
	Registered func(bool)

	// describe is replaced by tests.
	describe func(name, address string) (cdi.Device, error)
}

// plugin is one that runs.
type plugin struct {
	Options
	table  *table
	places places
}

// newPlugin returns a plugin with defaults in place of what the options leave out.
func newPlugin(o Options) *plugin {
	if o.Folder == "" {
		o.Folder = v1beta1.DevicePluginPath
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Registered == nil {
		o.Registered = func(bool) {}
	}
	if o.describe == nil {
		o.describe = func(name, address string) (cdi.Device, error) { return cdi.Describe(name, address, o.Sockets) }
	}
	return &plugin{Options: o, table: newTable(&o), places: places{client: o.Client, asked: make(map[string]place)}}
}

// Run offers devices until the context ends, or until an error that no retry mends.
func Run(ctx context.Context, o Options) error {
	p := newPlugin(o)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		p.follow(ctx)
		return nil
	})
	group.Go(func() error { return p.register(ctx) })
	return group.Wait()
}

package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/control/internal/surge"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Options adjusts a server. The zero value is valid.
type Options struct {
	// Logger receives what happens to devices, and their own log lines. Nil
	// discards it.
	Logger *slog.Logger
	// Interval is the time between two checks of a device. A change that only the device or the
	// application knows is seen that late. A device that could not be opened is tried again after
	// it, then ever later, at most after 32 times the interval. Default: 1 s.
	Interval time.Duration
	// ProbeTimeout bounds the round trip of a health check; a device that then
	// still owes the answer is latched as lost one second later. Default: 1 s.
	ProbeTimeout time.Duration
	// WatchBuffer is the number of changes that a watcher may be behind before
	// it is cut off with ErrSlowWatcher, at most 4096. Default: 256.
	WatchBuffer int
	// ChannelIdle is the time after which a remote channel that nobody uses is
	// closed. Default: 10 min; negative: never.
	ChannelIdle time.Duration
	// MaxChannels bounds the remote channels of a device. Default: 1024.
	MaxChannels int
	// MaxImage is the size in bytes of the largest program image that is taken.
	// Default: 64 MiB.
	MaxImage int
	// Caller returns the name of a call's caller, for events and the log; nil if no
	// caller is known. access.CallerOf is one, behind the credentials of that package.
	Caller func(context.Context) string
	// Groups lists the members of groups that this process shows, each by a name
	// of its own: "groups/{name}". Several calls may list at once. Nil: none.
	Groups func() iter.Seq2[string, *group.Group]
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	or(&o.Interval, time.Second)
	or(&o.ProbeTimeout, time.Second)
	or(&o.WatchBuffer, 256)
	or(&o.ChannelIdle, 10*time.Minute)
	or(&o.MaxChannels, 1024)
	or(&o.MaxImage, 64<<20)
	o.WatchBuffer = min(o.WatchBuffer, history)
	return o
}

func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Server serves the control plane of the devices it is given. All methods are
// safe for concurrent use. Shutdown releases what it holds.
type Server struct {
	opt     Options
	log     *slog.Logger
	session session

	deviceHub  *hub[*nfcommsv1.Device]
	channelHub *hub[*nfcommsv1.Channel]
	eventHub   *hub[*nfcommsv1.Event]
	surges     *surge.Limiter[doer]
	health     *healthTable

	background callGroup     // of what looks after devices and feeds watchers
	calls      callGroup     // of unary calls
	done       chan struct{} // closed when Shutdown begins
	ended      chan struct{} // closed when Shutdown is over
	failure    error         // of Shutdown; valid once ended is closed

	mu      sync.Mutex // taken before that of a device
	devices map[string]*device
}

// New returns a server without devices.
func New(o Options) *Server {
	s := &Server{
		opt:        o.withDefaults(),
		deviceHub:  newHub[*nfcommsv1.Device](true),
		channelHub: newHub[*nfcommsv1.Channel](true),
		eventHub:   newHub[*nfcommsv1.Event](false),
		health:     newHealthTable(),
		done:       make(chan struct{}),
		ended:      make(chan struct{}),
		devices:    make(map[string]*device),
	}
	s.log = s.opt.Logger
	s.surges = surge.New(surgeBurst, surgeWindow, s.suppressed)
	_, _ = rand.Read(s.session[:]) // never fails
	return s
}

// Attach shows and operates a device of the application, under the name
// "devices/{name}". The application closes the device, which ends its listing.
// It returns after the first health check, whatever its result.
// ErrInvalid for a name that is no resource name, ErrBusy for one in use,
// ErrShutdown after Shutdown.
func (s *Server) Attach(name string, dev *nfcomms.Device) error {
	d := newDevice(s, name, dev.Info().Address, dev)
	if err := s.add(d); err != nil {
		return err
	}
	<-d.tried
	return nil
}

// Open opens a device, which belongs to the server: Shutdown closes it. A
// device that cannot be opened is listed as failed, with the reason, and tried
// again; that is no error of Open. It waits for the first try, which ctx bounds.
// Errors are those of Attach.
func (s *Server) Open(ctx context.Context, name, address string) error {
	d := newDevice(s, name, address, nil)
	if err := s.add(d); err != nil {
		return err
	}
	select {
	case <-d.tried:
	case <-ctx.Done():
	}
	return nil
}

// add lists a device and starts to look after it.
func (s *Server) add(d *device) error {
	if err := CheckDevice(d.id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.devices[d.id]; there {
		return fmt.Errorf("device name %q: %w", d.id, nfcomms.ErrBusy)
	}
	if !s.background.spawn(d.run) {
		return ErrShutdown
	}
	s.devices[d.id] = d
	return nil
}

// Remove ends the listing of a device and closes it if Open opened it. Its
// remote channels close, calls on them end with ErrClosed. ErrNoDevice if there
// is none of that name, ErrShutdown after Shutdown.
func (s *Server) Remove(name string) error {
	d, err := s.device(name)
	if err != nil {
		return err
	}
	return s.drop(d)
}

// drop forgets a device, once.
func (s *Server) drop(d *device) error {
	s.mu.Lock()
	if s.devices[d.id] != d {
		s.mu.Unlock()
		return nil
	}
	delete(s.devices, d.id)
	s.mu.Unlock()
	return d.close()
}

// device finds a device by name.
func (s *Server) device(name string) (*device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.devices[name]
	if d == nil {
		return nil, s.unlisted(name, ErrNoDevice)
	}
	return d, nil
}

// unlisted returns err for a device that is not listed, but ErrShutdown after Shutdown. A client shall
// ask another server then, and not take the device for removed.
func (s *Server) unlisted(name string, err error) error {
	select {
	case <-s.done:
		return ErrShutdown
	default:
		return fmt.Errorf("%q: %w", DeviceName(name), err)
	}
}

// list returns the devices in the order of their names: one, or all if name is
// empty.
func (s *Server) list(name string) ([]*device, error) {
	if name != "" {
		d, err := s.device(name)
		return []*device{d}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*device, 0, len(s.devices))
	for _, name := range slices.Sorted(maps.Keys(s.devices)) {
		list = append(list, s.devices[name])
	}
	return list, nil
}

// Devices yields the devices that are open now, in the order of their names.
// One may be closed while it is looked at.
func (s *Server) Devices() iter.Seq2[string, *nfcomms.Device] {
	return func(yield func(string, *nfcomms.Device) bool) {
		all, _ := s.list("")
		for _, d := range all {
			if dev := d.opened(); dev != nil && !yield(d.id, dev) {
				return
			}
		}
	}
}

// States yields every listed device, in the order of their names, with its state
// as the server last found it.
func (s *Server) States() iter.Seq2[string, nfcommsv1.Device_State] {
	return func(yield func(string, nfcommsv1.Device_State) bool) {
		all, _ := s.list("")
		for _, d := range all {
			if !yield(d.id, d.current()) {
				return
			}
		}
	}
}

// Shutdown turns health to NOT_SERVING, refuses new calls, and lets the unary calls under way
// continue until ctx ends. It ends watches with ErrShutdown, which may be resumed at a server that
// took over. Then it closes remote channels and the devices that Open opened, which ends the calls
// that are left. It returns when all is over, or with an error when ctx ends, while the rest
// continues; call it again to wait for that.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.background.close() {
		s.calls.close()
		s.health.Shutdown()
		close(s.done)
		go s.finish(ctx)
	}
	select {
	case <-s.ended:
		return s.failure
	case <-ctx.Done():
		return fmt.Errorf("shut down: %w", ctx.Err())
	}
}

// finish waits for the calls under way until ctx ends, ends the devices, and
// waits for everything that was spawned.
func (s *Server) finish(ctx context.Context) {
	quiet := make(chan struct{})
	go func() {
		s.calls.running.Wait()
		close(quiet)
	}()
	select {
	case <-quiet:
	case <-ctx.Done():
	}
	all, _ := s.list("")
	failed := make([]error, len(all))
	var ending sync.WaitGroup
	for i, d := range all {
		ending.Go(func() { failed[i] = s.drop(d) })
	}
	ending.Wait()
	s.background.running.Wait()
	<-quiet
	s.surges.Flush()
	s.failure = errors.Join(failed...)
	close(s.ended)
}

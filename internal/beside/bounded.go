package beside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Bounds is what Bounded does.
type Bounds struct {
	// Open returns a world. It lasts at the longest until ctx ends.
	Open func(ctx context.Context) (*World, error)
	// At is how many worlds there may be at a time.
	At int
	// Enter brings the devices of worlds into the state in which they do nothing more, or nothing
	// soon; leave ends that.
	Enter func(all []*World) (leave func())
	// Waits are methods that need the device's answer by what they promise: they end when it is lost.
	Waits []string
	// Lost is the time in which a device that does not answer is lost: those of Waits end by then.
	// 0: they are not called. Otherwise each method has one of both contexts, in turn.
	Lost time.Duration
}

// Waits are the methods of a device, and of what it gives, that gave away what only the device can give
// back: only with its answer, or without the device, their outcome is known.
var Waits = []string{
	"Channel.Call", "Channel.Close", "Channel.ReceiveInd", "Channel.Send", "Channel.SendInd",
	"Channel.SendIndFunc", "Device.Alloc", "HostWindow.Revoke", "Instance.Close", "Listener.Close", "Supervisor.Run",
	"functions.Select", "functions.SelectDefault", "functions.Striped",
	"functions.TrySend", "functions.TrySendInd",
}

// endless are those that wait for what their callers do elsewhere: it takes no part.
var endless = []string{"Instance.Wait"}

// passesOn are those that return the error of their context as it is: what they wait for goes on, or was
// done in part.
var passesOn = []string{"Future.Wait", "Completions.Wait", "Fabric.Put", "Fabric.Get"}

// Lost is the time in which a device with the usual heartbeat is lost.
const Lost = 1500 * time.Millisecond

const (
	patience = 100 * time.Millisecond // that a context gives a call
	slack    = 4 * time.Second        // beyond that: less than any wait for the device
)

// Bounded calls every method of a world in a state of its device, once with a context that ends soon
// and once with one that ends during the call, and fails if one does not return although the device
// does nothing. It logs the latest.
func Bounded(t *testing.T, b Bounds) {
	t.Helper()
	w, err := b.world(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r := &run{count: make(map[pair]int)}
	if _, err = r.methodsOf(w); err == nil {
		err = w.End()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range b.Waits {
		if object := (method{name: name}).object(); !slices.Contains(r.names, name) && slices.ContainsFunc(r.names, func(one string) bool {
			return (method{name: one}).object() == object
		}) {
			t.Errorf("no method %s", name)
		}
	}
	var due []trial
	for i, name := range r.names {
		for n := range 2 {
			if b.Lost > 0 && n != i%2 {
				continue
			}
			waits := slices.Contains(b.Waits, name)
			if !slices.Contains(endless, name) && (!waits || b.Lost > 0) {
				due = append(due, trial{method: i, cancel: n%2 == 0, waits: waits})
			}
		}
	}
	slices.SortStableFunc(due, func(x, y trial) int { return cmp.Compare(b.most(x), b.most(y)) }) // the slow ones together
	latest := make(map[string]time.Duration)
	for part := range slices.Chunk(due, b.At) {
		for i, late := range b.together(t, r, part) {
			name := r.names[part[i].method]
			latest[name] = max(latest[name], late)
		}
	}
	slices.SortFunc(r.names, func(a, b string) int { return int(latest[b] - latest[a]) })
	var list strings.Builder
	for _, name := range r.names[:min(10, len(r.names))] {
		fmt.Fprintf(&list, " %s %v", name, latest[name].Round(time.Millisecond))
	}
	t.Logf("%d methods; latest:%s", len(r.names), list.String())
}

// world opens a world in which a device of the address can be opened as well. A shared device has places for
// so many hosts, which is why worlds of Run do not.
func (b *Bounds) world(ctx context.Context) (*World, error) {
	w, err := b.Open(ctx)
	if err == nil {
		w.Objects = append(w.Objects, Object{Name: "package", Value: opener(w.Address)})
	}
	return w, err
}

// opener is an address.
type opener string

func (o opener) Open(ctx context.Context) error {
	dev, err := nfcomms.Open(ctx, string(o))
	if err != nil {
		return err
	}
	return dev.Close()
}

// trial is one call.
type trial struct {
	method int
	cancel bool // else its context has a deadline
	waits  bool // for the device, until that is lost
}

// most is how long a call may take.
func (b *Bounds) most(how trial) time.Duration {
	if how.waits {
		return b.Lost
	}
	return patience
}

// together makes some calls, each in a world of its own, and returns how late they were.
func (b *Bounds) together(t *testing.T, r *run, trials []trial) (late []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	worlds, calls := make([]*World, len(trials)), make([]method, len(trials))
	for i, one := range trials {
		w, err := b.world(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.methodsOf(w)
		if err != nil {
			t.Fatal(err)
		}
		worlds[i], calls[i] = w, all[one.method]
	}
	late = make([]time.Duration, len(trials))
	leave := b.Enter(worlds)
	var wg sync.WaitGroup
	c := newClock()
	for i := range trials {
		wg.Go(func() { late[i] = b.one(t, c, trials[i], worlds[i], calls[i]) })
	}
	wg.Wait()
	c.stop()
	leave()
	for _, w := range worlds {
		wg.Go(func() { _ = w.End() }) // its device may have been lost
	}
	wg.Wait()
	return late
}

// one makes a call and returns how much later it returned than it should at the latest: when its context
// ended, or the device was lost.
func (b *Bounds) one(t *testing.T, c *clock, how trial, w *World, m method) time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	if how.cancel {
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(patience, cancel)
	}
	defer cancel()
	most := b.most(how)
	done := make(chan struct{})
	start := c.now()
	go func() {
		defer close(done)
		for _, err := range w.invoke(ctx, m) {
			if bare(err) && !slices.Contains(passesOn, m.name) {
				t.Errorf("%s: %v: its context has ended, which is no ErrWithdrawn", m.name, err)
			}
		}
	}()
	for {
		select {
		case <-done:
			return c.now() - start - most
		case <-time.After(slack / 10):
		}
		if c.now()-start > most+slack {
			stacks := make([]byte, 1<<20)
			t.Errorf("%s has not returned after %v, %v of them too many (cancelled: %t)\n%s", m.name, most+slack, slack, how.cancel,
				callOf(string(stacks[:runtime.Stack(stacks, true)])))
			return slack
		}
	}
}

// callOf returns the goroutines that are in a call.
func callOf(stacks string) string {
	var found []string
	for _, one := range strings.Split(stacks, "\n\n") {
		if strings.Contains(one, "(*World).invoke") {
			found = append(found, one)
		}
	}
	return strings.Join(found, "\n\n")
}

// invoke calls a method and returns its errors. Results that have to be ended are not: the device may
// not answer that.
func (w *World) invoke(ctx context.Context, m method) (errs []error) {
	for _, out := range m.call.Call(w.in(ctx, m)) {
		if err, is := out.Interface().(error); is && out.Type() == errorType {
			errs = append(errs, err)
		}
	}
	return errs
}

// bare reports whether err is that of a context, and not one that says that nothing was done.
func bare(err error) bool {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	return ended && !errors.Is(err, nfcomms.ErrWithdrawn)
}

// clock runs only while this process gets a processor: it counts ticks that were seen to pass.
type clock struct {
	mu    sync.Mutex
	ticks int
	ended chan struct{}
}

const tick = 5 * time.Millisecond

func newClock() *clock {
	c := &clock{ended: make(chan struct{})}
	go func() {
		for {
			select {
			case <-time.After(tick):
				c.mu.Lock()
				c.ticks++
				c.mu.Unlock()
			case <-c.ended:
				return
			}
		}
	}()
	return c
}

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.ticks) * tick
}

func (c *clock) stop() { close(c.ended) }

// Visible is the time in which a blocked call ends once the death of its peer can be seen.
const Visible = 100 * time.Millisecond

// Ends starts calls, waits until they are blocked, and has their peer die. It fails if one of them
// has not returned when this process has had a processor for Visible after that, and returns their
// errors by name.
func Ends(t *testing.T, calls map[string]func() error, blocked func(), die func()) map[string]error {
	t.Helper()
	type end struct {
		name string
		err  error
	}
	ends := make(chan end, len(calls))
	for name, call := range calls {
		go func() { ends <- end{name, call()} }()
	}
	blocked()
	die()
	c := newClock()
	defer c.stop()
	errs := make(map[string]error)
	for len(errs) < len(calls) {
		select {
		case e := <-ends:
			errs[e.name] = e.err
		case <-time.After(tick):
		}
		if late := c.now(); late > Visible && len(errs) < len(calls) {
			t.Fatalf("only %d of %d calls have ended %v after the death of their peer", len(errs), len(calls), late)
		}
	}
	return errs
}

// in makes the arguments of a method.
func (w *World) in(ctx context.Context, m method) (in []reflect.Value) {
	for i := range m.call.Type().NumIn() {
		switch of := m.call.Type().In(i); {
		case of == contextType:
			in = append(in, reflect.ValueOf(ctx))
		case w.Arguments[of] != nil:
			v := reflect.New(of).Elem()
			v.Set(reflect.ValueOf(w.Arguments[of]()))
			in = append(in, v)
		}
	}
	return in
}

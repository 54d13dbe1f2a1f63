package beside

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Object is one whose methods run.
type Object struct {
	Name  string
	Value any
	// As is the interface whose methods run; nil: those of the value's own type.
	As reflect.Type
}

// World is what one round works on. All of it is fresh.
type World struct {
	Objects []Object
	// Arguments make a value of each type that a method takes, of the type itself.
	Arguments map[reflect.Type]func() any
	// Drop ends a result of a type. A result that has a method Close or Revoke, and is not named
	// here, is ended by that.
	Drop map[reflect.Type]func(any)
	// End ends the round, after all calls have returned.
	End func() error
	// Address is that of the device, if it has one.
	Address string
}

// Suite is what Run does.
type Suite struct {
	// Open returns the world of a round. It lasts at the longest until ctx ends.
	Open func(ctx context.Context) (*World, error)
	// Once are the methods that end something, such as "Device.Close": a round calls them once.
	Once []string
	// Ends are those of them that end all others.
	Ends []string
	// Alone are methods that do not run beside each other, and themselves, on one object: its
	// documentation says so.
	Alone []string
	// Rounds is the least number of rounds.
	Rounds int
}

const (
	threads  = 16                     // that Go runs at a time
	worlds   = 3                      // of rounds at a time
	together = 16                     // methods of a round
	copies   = 4                      // of the pair that is due, beside it, at most
	longest  = 2 * time.Millisecond   // that a call may wait
	hang     = 30 * time.Second       // after all contexts have ended
	span     = 300 * time.Microsecond // in which what ends something is called
	often    = 8                      // as many rounds for a pair with one of Ends
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// method is one of an object.
type method struct {
	name string // "Device.Close"
	call reflect.Value
}

// object returns the name of the object.
func (m method) object() string {
	name, _, _ := strings.Cut(m.name, ".")
	return name
}

// pair names two methods by their numbers, the smaller first.
type pair [2]int

func pairOf(a, b int) pair { return pair{min(a, b), max(a, b)} }

// run is one Run.
type run struct {
	Suite
	mu     sync.Mutex // guards what follows
	names  []string   // of the methods, in every world alike
	count  map[pair]int
	rounds int
}

// Run makes rounds, each with some methods beside each other, until there were enough and every
// method ran beside every other, and itself. It fails if an argument or a result of a method has
// a type without a recipe, or if a call does not return.
func Run(t *testing.T, s Suite) {
	t.Helper()
	// More threads than processors: the system stops some of them anywhere. With it a fault that
	// needed a stop between two lines was found in 100 rounds, and without it in 500 or not.
	before := runtime.GOMAXPROCS(threads)
	defer runtime.GOMAXPROCS(before)
	r := &run{Suite: s, count: make(map[pair]int)}
	failed := make(chan error, worlds)
	var wg sync.WaitGroup
	for range worlds {
		wg.Go(func() {
			for len(failed) == 0 && r.more() {
				if err := r.round(); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	t.Logf("%d rounds of %d methods, each pair in %d at least", r.rounds, len(r.names), r.least())
}

// more begins a round, if there were not enough.
func (r *run) more() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds++
	return r.rounds <= r.Rounds || r.least() == 0
}

// least is in how many rounds each pair ran. Must hold mu, or be alone.
func (r *run) least() int {
	_, least := r.rarest()
	return least
}

// rarest returns the pair that is due, and in how many rounds it ran. Must hold mu.
func (r *run) rarest() (rare pair, fewest int) {
	fewest = -1
	for a := range r.names {
		for b := a; b < len(r.names); b++ {
			n := r.count[pair{a, b}]
			if slices.Contains(r.Ends, r.names[a]) || slices.Contains(r.Ends, r.names[b]) {
				n /= often
			}
			if r.beside(a, b) && (fewest < 0 || n < fewest) {
				rare, fewest = pair{a, b}, n
			}
		}
	}
	return rare, max(fewest, 0)
}

// beside reports whether two methods may run beside each other.
func (r *run) beside(a, b int) bool {
	alone := func(i int) bool { return slices.Contains(r.Alone, r.names[i]) }
	same := method{name: r.names[a]}.object() == method{name: r.names[b]}.object()
	return !same || !alone(a) || !alone(b)
}

// methodsOf lists the methods of the objects. Of several objects of a name one is drawn.
func (r *run) methodsOf(w *World) (all []method, err error) {
	drawn := make(map[string]Object)
	var names []string
	for _, i := range rand.Perm(len(w.Objects)) {
		drawn[w.Objects[i].Name] = w.Objects[i]
	}
	for name, o := range drawn {
		of := o.As
		if of == nil {
			of = reflect.TypeOf(o.Value)
		}
		for i := range of.NumMethod() {
			m := method{name + "." + of.Method(i).Name, reflect.ValueOf(o.Value).MethodByName(of.Method(i).Name)}
			err = errors.Join(err, w.check(m))
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b method) int { return strings.Compare(a.name, b.name) })
	for _, m := range all {
		names = append(names, m.name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = names
	}
	if !slices.Equal(names, r.names) {
		err = errors.Join(err, fmt.Errorf("methods %v, in the first round %v", names, r.names))
	}
	for _, name := range slices.Concat(r.Once, r.Ends, r.Alone) {
		object := method{name: name}.object()
		if _, there := drawn[object]; there && !slices.Contains(r.names, name) {
			err = errors.Join(err, fmt.Errorf("no method %s", name))
		}
	}
	return all, err
}

// check fails if a method needs a recipe that is not there.
func (w *World) check(m method) error {
	of := m.call.Type()
	for i := range of.NumIn() {
		in := of.In(i)
		if in != contextType && w.Arguments[in] == nil && !(of.IsVariadic() && i == of.NumIn()-1) {
			return fmt.Errorf("%s takes a %v: World.Arguments has no recipe for one", m.name, in)
		}
	}
	for i := range of.NumOut() {
		if out := of.Out(i); out.Kind() == reflect.Func && w.Drop[out] == nil {
			return fmt.Errorf("%s returns a %v: World.Drop has no recipe for one", m.name, out)
		}
	}
	return nil
}

// round runs some methods beside each other.
func (r *run) round() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := r.Open(ctx)
	if err != nil {
		return err
	}
	all, err := r.methodsOf(w)
	if err != nil {
		return err
	}
	chosen := r.choose(all)
	var once, loops sync.WaitGroup
	start, under := make(chan struct{}), make([]atomic.Bool, len(chosen))
	for i, m := range chosen {
		under[i].Store(true)
		kind, run := &loops, w.loop
		if slices.Contains(r.Once, m.name) {
			kind, run = &once, w.once
		}
		kind.Go(func() {
			<-start
			run(ctx, m)
			under[i].Store(false)
		})
	}
	close(start)
	time.Sleep(rand.N(longest)) // how long a round is decides nothing, …
	ended := within(&once)      // … but that what ends something has run beside the others
	cancel()
	if within(&loops) && ended {
		return w.End()
	}
	var late []string
	for i, m := range chosen {
		if under[i].Load() {
			late = append(late, m.name)
		}
	}
	stacks := make([]byte, 1<<20)
	return fmt.Errorf("%v have not returned %v after their contexts ended:\n%s", late, hang, stacks[:runtime.Stack(stacks, true)])
}

// choose draws the methods of a round: the pair that is due, perhaps several times, mostly something that ends
// all others, and what chance brings.
func (r *run) choose(all []method) (chosen []method) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []int
	add := func(i int) {
		if len(list) < together && !slices.ContainsFunc(list, func(j int) bool { return !r.beside(i, j) }) {
			list = append(list, i)
		}
	}
	rare, _ := r.rarest()
	add(rare[0])
	add(rare[1])
	for n, i := rand.IntN(copies), 0; i < n; i++ {
		if one := rare[rand.IntN(2)]; !slices.Contains(r.Once, r.names[one]) {
			add(one)
		}
	}
	if n := rand.IntN(len(r.Ends) + 1); n < len(r.Ends) {
		add(slices.Index(r.names, r.Ends[n]))
	}
	for _, i := range rand.Perm(len(all)) {
		add(i)
	}
	counted := make(map[pair]bool)
	for i, a := range list {
		for _, b := range list[i+1:] {
			counted[pairOf(a, b)] = true
		}
		chosen = append(chosen, all[a])
	}
	for p := range counted {
		r.count[p]++
	}
	return chosen
}

// within waits until all have ended; false if they do not.
func within(all *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(hang):
		return false
	}
}

// loop calls a method until the round is over.
func (w *World) loop(ctx context.Context, m method) {
	for ctx.Err() == nil {
		w.call(ctx, m)
	}
}

// once calls a method at a time that chance decides.
func (w *World) once(ctx context.Context, m method) {
	for until := time.Now().Add(rand.N(span)); time.Now().Before(until); {
		runtime.Gosched()
	}
	w.call(ctx, m)
}

// call calls a method and ends what it returned.
func (w *World) call(ctx context.Context, m method) {
	ctx, cancel := context.WithTimeout(ctx, rand.N(longest))
	defer cancel()
	for _, out := range m.call.Call(w.in(ctx, m)) {
		w.drop(out)
	}
}

// drop ends a result.
func (w *World) drop(out reflect.Value) {
	switch out.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func:
		if out.IsNil() || out.Type() == errorType {
			return
		}
	}
	if drop := w.Drop[out.Type()]; drop != nil {
		drop(out.Interface())
		return
	}
	switch v := out.Interface().(type) {
	case interface{ Close() error }:
		_ = v.Close() // it may have ended
	case interface{ Close() }:
		v.Close()
	case interface{ Revoke() }:
		v.Revoke()
	}
}

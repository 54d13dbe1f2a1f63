package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// OpenFunc opens a device of the back end under test. Options is the query of
// an address, such as "channels=20000&managers=2"; the function fails the test
// if the device does not open. The suite closes the device.
type OpenFunc func(t *testing.T, options string) bridge.Device

// Run is Run of package bridge/bridgetest, which documents what a device must have.
//
// without names cases that say something of the host alone, and cannot where
// the device is a part of the test's own process or has no such process. The race detector has nothing
// to find in huge transfers, and takes a minute for them: with it they are left
// out, and where time is short.
func Run(t *testing.T, open OpenFunc, without ...string) {
	t.Helper()
	for _, name := range without {
		require.Contains(t, Names(), name)
	}
	runIf(t, open, func(name string) bool { return !slices.Contains(without, name) })
}

// RunTransfers runs the cases of the suite about the bytes of transfers, for another configuration
// of a device. It leaves out the cases named in without.
func RunTransfers(t *testing.T, open OpenFunc, without ...string) {
	t.Helper()
	runIf(t, open, func(name string) bool {
		if slices.Contains(without, name) {
			return false
		}
		group, _, _ := strings.Cut(name, "/")
		return slices.Contains([]string{"transfer", "posted", "begun", "region", "memory", "refusal", "extended", "cancel"}, group) ||
			slices.Contains([]string{"huge/list-number-wraps", "close/during-transfer", "reset/during-transfers"}, name)
	})
}

// runIf runs the cases of the suite whose names are good.
func runIf(t *testing.T, open OpenFunc, good func(name string) bool) {
	t.Helper()
	for _, c := range cases {
		if !good(c.name) || (RaceEnabled || testing.Short()) && strings.HasPrefix(c.name, "huge/") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			e := NewEnv(t)
			e.open = open
			c.run(e)
		})
	}
}

// testCase is one rule.
type testCase struct {
	name string
	run  func(e *Env)
}

var cases = concat(directCases, cancelCases, transferCases, regionCases, refusalCases, hugeCases, closeCases,
	controlCases, resetCases, tryCases, extendedCases, callCases, statsCases, crowdCases, ledgerCases, postedCases, begunCases, memoryCases)

// Names returns the names of the suite's cases: what Run calls its subtests.
func Names() []string {
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.name
	}
	return names
}

func concat(groups ...[]testCase) (all []testCase) {
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// watchdog is a context that ends when the test does, or hangs. It has no
// deadline: calls hand deadlines on to the device.
func watchdog(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	timer := time.AfterFunc(patience, cancel)
	t.Cleanup(func() { timer.Stop(); cancel() })
	return ctx
}

// Env is what a case works with.
type Env struct {
	*testing.T
	open     OpenFunc
	guests   *guests // if processes are to open the channels
	watchdog context.Context
}

// NewEnv is an Env for a test that opens its devices by itself. It checks for
// leaks, and ends the process with all stacks if the test hangs.
func NewEnv(t *testing.T) *Env {
	LeakCheck(t)
	watch(t)
	return &Env{T: t, watchdog: watchdog(t)}
}

// patience bounds a wait for something that must happen. It is a watchdog: no
// rule depends on it.
const patience = 4 * time.Minute

// watch ends the process with all goroutine stacks if the test hangs.
func watch(t *testing.T) {
	timer := time.AfterFunc(patience+time.Minute, func() {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		panic("bridgetest: " + t.Name() + " hangs")
	})
	t.Cleanup(func() { timer.Stop() })
}

// device opens a device and closes it when the test ends.
func (e *Env) device(options string) bridge.Device {
	e.Helper()
	dev := e.open(e.T, options)
	e.Cleanup(func() {
		if err := dev.Close(); err != nil {
			e.Errorf("close device: %v", err)
		}
	})
	return dev
}

// Ctx is a context that ends only if something hangs.
func (e *Env) Ctx() context.Context { return e.watchdog }

// Start runs a program with n ports.
func (e *Env) Start(dev bridge.Device, name string, n int) bridge.Process {
	e.Helper()
	var p bridge.Process
	var err error
	if e.guests != nil {
		p, err = e.guests.of[dev].start(e.Ctx(), name, n)
	} else {
		p, err = dev.Start(e.Ctx(), bridge.Program{Name: name, Targets: n})
	}
	require.NoError(e, err, "start %s", name)
	require.Equal(e, n, p.Targets)
	require.GreaterOrEqual(e, p.First, bridge.Target(abi.TargetFirst))
	return p
}

// Subscribe opens the channel to a target.
func (e *Env) Subscribe(dev bridge.Device, target bridge.Target) bridge.Channel {
	e.Helper()
	ch, err := e.subscribe(e.Ctx(), dev, target)
	require.NoError(e, err, "subscribe target %d", target)
	if e.guests == nil {
		require.Equal(e, target, ch.Target())
	}
	return ch
}

// subscribe is Subscribe, of any goroutine.
func (e *Env) subscribe(ctx context.Context, dev bridge.Device, target bridge.Target) (bridge.Channel, error) {
	if e.guests != nil {
		return e.guests.of[dev].channel(ctx, target)
	}
	return dev.Subscribe(ctx, target)
}

// stop stops a process, from any goroutine.
func (e *Env) stop(dev bridge.Device, p bridge.Process) error {
	if e.guests != nil {
		dev = e.guests.of[dev].runs
	}
	return dev.Stop(e.Ctx(), p.ID)
}

// apart starts a program for so many targets: for a process of each, where processes open the
// channels, as one that opens a channel anew waits until that is accepted.
func (e *Env) apart(dev bridge.Device, name string, n int) (targets []bridge.Target) {
	e.Helper()
	if e.guests != nil {
		for range n {
			targets = append(targets, e.Start(dev, name, 1).First)
		}
		return targets
	}
	p := e.Start(dev, name, n)
	for i := range n {
		targets = append(targets, p.First+bridge.Target(i))
	}
	return targets
}

// most is how many channels a case opens that wants so many.
func (e *Env) most(n int) int {
	if e.guests != nil {
		return min(n, guestsMost)
	}
	return n
}

// Ports starts a program and subscribes all of its ports.
func (e *Env) Ports(dev bridge.Device, name string, n int) []bridge.Channel {
	e.Helper()
	p := e.Start(dev, name, n)
	ports := make([]bridge.Channel, n)
	for i := range ports {
		ports[i] = e.Subscribe(dev, p.First+bridge.Target(i))
	}
	return ports
}

// Pending is a call that another goroutine makes.
type Pending struct {
	Name string
	done chan error // buffered 1
}

// Call makes a Call on a goroutine of its own.
func Call(name string, f func() error) *Pending {
	p := &Pending{Name: name, done: make(chan error, 1)}
	go func() {
		err := errors.New(name + " ended its goroutine") // by a failed requirement
		defer func() { p.done <- err }()
		err = f()
	}()
	return p
}

// Wait returns what the call returned.
func (e *Env) Wait(p *Pending) error {
	e.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(patience):
		require.FailNow(e, "hangs", p.Name)
		return nil
	}
}

// Over reports whether the call returned already.
func (p *Pending) Over() bool { return len(p.done) > 0 }

// Until polls for a condition that must hold.
func (e *Env) Until(what string, cond func() bool) {
	e.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			require.FailNow(e, "never: "+what)
		}
	}
}

// health returns the heartbeat of a device that is well; one that has no processor may be late.
func (e *Env) health(dev bridge.Device) (h bridge.Health) {
	e.Helper()
	e.Until("a heartbeat in time", func() bool {
		var err error
		h, err = dev.Health()
		return err == nil
	})
	return h
}

// UntilBlocked waits until n calls of the device are asleep.
func (e *Env) UntilBlocked(dev bridge.Device, n int) {
	e.Helper()
	e.Until(fmt.Sprintf("%d calls blocked, now %d", n, dev.Stats().Blocked),
		func() bool { return dev.Stats().Blocked >= n })
}

// send and receive are the calls as they must work.
func (e *Env) send(ch bridge.Channel, msg []byte) {
	e.Helper()
	require.NoError(e, ch.Send(e.Ctx(), msg))
}

func (e *Env) receive(ch bridge.Channel) []byte {
	e.Helper()
	buf := make([]byte, abi.PayloadSize)
	n, err := ch.Receive(e.Ctx(), buf)
	require.NoError(e, err)
	return buf[:n]
}

// Echo sends a message to a loopback and checks the answer.
func (e *Env) Echo(ch bridge.Channel, msg []byte) {
	e.Helper()
	e.send(ch, msg)
	require.Equal(e, msg, e.receive(ch))
}

// Scaled is n, or a tenth of it where time is short.
func Scaled(n int) int {
	if RaceEnabled || testing.Short() {
		return n / 10
	}
	return n
}

// IsWithdrawn requires the outcome of a cancelled call: withdrawn, for the
// cause given.
func (e *Env) IsWithdrawn(err, cause error) {
	e.Helper()
	require.ErrorIs(e, err, bridge.ErrWithdrawn)
	require.ErrorIs(e, err, cause)
	var w *bridge.WithdrawnError
	require.ErrorAs(e, err, &w)
}

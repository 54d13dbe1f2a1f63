package bridgetest

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

// endless is more sends than a round takes.
const endless = 1 << 40

// soakEnds are the ways a round of Soak ends, beside its calls' own faults.
var soakEnds = [...]string{"channels closed", "process stopped", "device reset", "nothing"}

// Soak makes calls until so many of them, or more, have ended with an error that was provoked. The
// causes are contexts that end, receives of a wrong kind or size, and channels, processes and
// devices that end meanwhile. A delivered message is received once and unchanged, except for the
// one that the device held when it ended; a call that ended with an error delivered nothing. The
// device needs the program "loopback".
func Soak(t *testing.T, open OpenFunc, faults int) {
	t.Helper()
	LeakCheck(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	e := &Env{T: t, open: open, watchdog: t.Context()}
	s := &soak{Env: e, dev: e.device("managers=2"), rand: rand.New(rand.NewPCG(seed, 0))}
	start := time.Now()
	for s.faults < int64(faults) {
		s.round()
	}
	require.Zero(t, s.dev.Stats().Faults)
	require.Zero(t, s.dev.Stats().Blocked)
	for i, n := range s.ends {
		t.Logf("%8d rounds ended with: %s", n, soakEnds[i])
	}
	t.Logf("%d faults in %d calls, %d delivered, %d received, none lost, doubled or changed, in %v",
		s.faults, s.calls, s.delivered, s.received, time.Since(start).Round(time.Millisecond))
}

// soak is a device, and what happened on it.
type soak struct {
	*Env
	dev  bridge.Device
	rand *rand.Rand

	faults, calls       int64
	delivered, received int
	ends                [len(soakEnds)]int
}

// round runs a ledger on each port of a process until something ends it.
func (s *soak) round() {
	const ports = 4
	p := s.Start(s.dev, "loopback", ports)
	how := s.rand.IntN(len(soakEnds))
	var all []*ledger
	var calls []*Pending
	for i := range ports {
		l := &ledger{
			ctx: s.Ctx(), ch: s.Subscribe(s.dev, p.First+bridge.Target(i)), max: 20_000,
			wrong: true, mortal: how == 1 || how == 2, lost: map[int]int{},
		}
		seed := s.rand.Uint64()
		n := 1 + s.rand.IntN(60)
		if how < 3 {
			n = endless
		}
		all = append(all, l)
		calls = append(calls, Call("ledger", func() error { return l.bothWays(seed, n) }))
	}
	if how < 3 {
		calledTo(all, s.rand.Int64N(200))
	}
	s.finish(how, p, all)
	for _, c := range calls {
		require.NoError(s, s.Wait(c), "round ended with: %s", soakEnds[how])
	}
	left := 1
	if how == 3 {
		left = 0
	}
	for _, l := range all {
		require.NoError(s, l.compare(left), "round ended with: %s", soakEnds[how])
		_ = l.ch.Close() // a device that was reset lost it
		s.faults += l.faults.Load()
		s.calls += l.ops.Load()
		s.delivered += len(l.delivered)
		s.received += len(l.received)
	}
	if how == 3 || how == 0 {
		s.stopped(p)
	}
	s.ends[how]++
}

// bothWays sends and receives at the same time. After few sends a last message
// ends the receiver.
func (l *ledger) bothWays(seed uint64, n int) error {
	receiver := Call("receiver", func() error { return l.receive(seed) })
	err := l.send(seed, n)
	if err == nil && n < endless {
		err = l.ch.Send(l.ctx, pattern.Words(lastID))
	}
	return errors.Join(err, <-receiver.done)
}

// calledTo waits until calls were made.
func calledTo(all []*ledger, n int64) {
	for made := int64(0); made < n; time.Sleep(50 * time.Microsecond) {
		made = 0
		for _, l := range all {
			made += l.ops.Load()
		}
	}
}

// finish ends a round.
func (s *soak) finish(how int, p bridge.Process, all []*ledger) {
	switch how {
	case 0:
		for _, l := range all {
			require.NoError(s, l.ch.Close())
		}
	case 1:
		s.stopped(p)
	case 2:
		require.NoError(s, s.dev.Reset(s.Ctx()))
	}
}

// stopped stops a process, if a reset has not done that.
func (s *soak) stopped(p bridge.Process) {
	if err := s.dev.Stop(s.Ctx(), p.ID); err != nil {
		require.ErrorIs(s, err, bridge.ErrInvalid)
	}
}

//go:build cgo

package nfcomms

import (
	"context"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// quick makes a supervisor that hardly waits.
func quick(programs ...Program) Supervisor {
	return Supervisor{Programs: programs, MinWait: time.Microsecond, MaxWait: time.Millisecond}
}

// echo sends and receives until something fails.
func echo(ctx context.Context, ch *Channel) error {
	buf := make([]byte, 8)
	for {
		if err := ch.Send(ctx, []byte("x")); err != nil {
			return err
		}
		if _, err := ch.Receive(ctx, buf); err != nil {
			return err
		}
	}
}

// TestSupervisorSurvivesResets: each reset is followed by a generation that
// works, for each of two who supervise the same device, and nothing is left.
func TestSupervisorSurvivesResets(t *testing.T) {
	const resets = 10
	d := openSim(t, "sim:?beat=1ms")
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	var works [2]atomic.Int64
	var wg sync.WaitGroup
	for i := range works {
		wg.Go(func() {
			s := quick(Program{Name: "loopback", Targets: 2}, Program{Name: "sink"})
			err := s.Run(ctx, d, func(ctx context.Context, g *Generation) error {
				if err := g.Instances[1].Channels[0].Send(ctx, nil); err != nil {
					return err
				}
				works[i].Add(1)
				return echo(ctx, g.Instances[0].Channels[1])
			})
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	for range resets {
		before := [2]int64{works[0].Load(), works[1].Load()}
		require.NoError(t, d.Reset(ctx))
		for i := range works {
			require.Eventually(t, func() bool { return works[i].Load() > before[i] }, time.Minute, time.Millisecond)
		}
	}
	cancel()
	wg.Wait()
	nothingRuns(t, d)
}

// TestSupervisorBeginsAgain: whatever ends a generation, the next begins, and a
// device is reset only where that is the remedy.
func TestSupervisorBeginsAgain(t *testing.T) {
	lose := func(err error) func(*Device, *rigged, *Generation) error {
		return func(_ *Device, r *rigged, _ *Generation) error {
			set(r, &r.health, func() error { return err })
			set(r, &r.reset, func(context.Context) error { set(r, &r.health, nil); return nil })
			return nil
		}
	}
	for name, c := range map[string]struct {
		breaks func(*Device, *rigged, *Generation) error
		resets uint64
	}{
		"lost":  {lose(ErrDeviceLost), 1},
		"fault": {lose(ErrFault), 1},
		"reset": {func(d *Device, _ *rigged, _ *Generation) error { return d.Reset(context.Background()) }, 1},
		"process": {func(d *Device, _ *rigged, g *Generation) error {
			return d.Stop(context.Background(), g.Instances[0].Process.ID)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := openRigged(t, "sim:?beat=1ms")
			last := 0
			err := quick(Program{Name: "loopback"}).Run(background(t), d, func(ctx context.Context, g *Generation) error {
				require.Equal(t, last+1, g.Number)
				if last = g.Number; last == 3 {
					return nil
				}
				broken := running(t, func() error { return c.breaks(d, r, g) })
				err := echo(ctx, g.Instances[0].Channels[0])
				broken()
				return err
			})
			require.NoError(t, err)
			require.Equal(t, 2*c.resets, d.Stats().Resets)
			nothingRuns(t, d)
		})
	}
}

// TestSupervisorEndsWorkThatWaits: the context of work that makes no call ends with a loss.
func TestSupervisorEndsWorkThatWaits(t *testing.T) {
	d := openSim(t, "sim:?beat=1ms")
	err := quick(Program{Name: "hold"}).Run(background(t), d, func(ctx context.Context, g *Generation) error {
		if g.Number == 2 {
			return nil
		}
		assert.NoError(t, d.Reset(background(t)))
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), ErrDeviceLost)
		return ctx.Err()
	})
	require.NoError(t, err)
	nothingRuns(t, d)
}

func TestSupervisorEnds(t *testing.T) {
	own := errors.New("own")
	never := func(context.Context, *Generation) error { panic("nothing can run") }
	fails := func(context.Context, *Generation) error { return own }
	d, r := openRigged(t, "sim:?beat=1ms")
	hold := Program{Name: "hold"}
	for name, c := range map[string]struct {
		s    Supervisor
		work func(context.Context, *Generation) error
		want error
	}{
		"own error":    {quick(hold), fails, own},
		"no programs":  {quick(), fails, own},
		"no program":   {quick(hold, Program{Name: "nothing"}), never, ErrNoProgram},
		"bad image":    {Supervisor{Images: [][]byte{[]byte("no image")}}, never, ErrInvalid},
		"bad programs": {quick(hold, Program{Name: "hold", Targets: -1}), never, ErrInvalid},
	} {
		require.ErrorIs(t, c.s.Run(background(t), d, c.work), c.want, name)
		nothingRuns(t, d)
	}
	require.PanicsWithValue(t, own, func() {
		_ = quick(hold).Run(background(t), d, func(context.Context, *Generation) error { panic(own) })
	})
	nothingRuns(t, d)

	ctx, cancel := context.WithCancel(background(t))
	err := quick(hold).Run(ctx, d, func(ctx context.Context, g *Generation) error {
		cancel()
		return g.Instances[0].Channels[0].Send(ctx, nil)
	})
	require.ErrorIs(t, err, ErrWithdrawn)
	require.ErrorIs(t, quick(hold).Run(ctx, d, never), ErrWithdrawn)
	for _, of := range []func(context.Context) error{context.Context.Err, context.Cause} {
		ctx, cancel := context.WithCancelCause(background(t))
		err = quick(hold).Run(ctx, d, func(ctx context.Context, _ *Generation) error {
			cancel(own)
			<-ctx.Done()
			return of(ctx)
		})
		require.ErrorIs(t, err, ErrWithdrawn, "a stop is a stop, however work reports it")
		require.ErrorIs(t, err, context.Canceled)
		var op *OpError
		require.ErrorAs(t, err, &op)
	}
	nothingRuns(t, d)
	set(r, &r.subscribe, func(context.Context, Target) error { return ErrNoMemory })
	ctx, cancel = context.WithTimeout(background(t), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, quick(hold).Run(ctx, d, never), context.DeadlineExceeded, "it waits for room as long as it may")
	set(r, &r.subscribe, nil)
	nothingRuns(t, d)

	err = quick(hold).Run(background(t), d, func(ctx context.Context, g *Generation) error {
		assert.NoError(t, d.Close())
		return g.Instances[0].Channels[0].Send(ctx, nil)
	})
	require.ErrorIs(t, err, ErrClosed)
}

// TestSupervisorLoadsAgain: what a reset dropped is loaded before it is run.
func TestSupervisorLoadsAgain(t *testing.T) {
	object := filepath.Join(t.TempDir(), "checksum.so")
	out, err := exec.Command("gcc", "-std=c11", "-shared", "-fPIC", "-DNFC_PROGRAM_SHARED", "-I../../firmware",
		"-o", object, "../../examples/program/device/checksum.c").CombinedOutput()
	require.NoError(t, err, "gcc (install it with: apt-get install gcc): %s", out)
	image, err := os.ReadFile(object)
	require.NoError(t, err)
	d := openSim(t, "sim:?beat=1ms")
	s := quick(Program{Name: "checksum"})
	s.Images = [][]byte{image}
	err = s.Run(background(t), d, func(ctx context.Context, g *Generation) error {
		ch := g.Instances[0].Channels[0]
		if err := ch.SendInd(ctx, "some text"); err != nil {
			return err
		}
		answer, err := ChanOf[struct{ Size, CRC uint64 }](ch).Receive(ctx)
		switch {
		case err != nil:
			return err
		case g.Number == 5:
			return nil
		}
		assert.EqualValues(t, crc32.ChecksumIEEE([]byte("some text")), answer.CRC)
		if g.Number%2 == 0 {
			return d.Stop(ctx, g.Instances[0].Process.ID)
		}
		return d.Reset(ctx)
	})
	require.NoError(t, err)
	nothingRuns(t, d)
}

// TestSupervisorIsOfOneEpoch: a reset between Load and Run takes the images with it, so that the
// generation is none.
func TestSupervisorIsOfOneEpoch(t *testing.T) {
	ctx := background(t)
	d, r := openRigged(t, "sim:?beat=1m") // its heartbeat notices nothing
	loads := 0
	set(r, &r.load, func() error {
		if loads++; loads == 1 {
			return r.Device.Reset(ctx)
		}
		return nil
	})
	s := quick(Program{Name: "loopback"})
	s.Images = [][]byte{[]byte("image")}
	require.NoError(t, s.Run(ctx, d, func(context.Context, *Generation) error { return nil }))
	require.Equal(t, 2, loads)
}

// TestSupervisorBacksOff: failures that follow each other are waited for longer
// and longer, up to the limit, and anew after a generation that lasted.
func TestSupervisorBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeDevice{address: "fake:", open: make(map[Target]*fakeChannel)}
		r := &rigged{Device: fake}
		d := newDevice(&healthy{r}, "fake:")
		var waits []time.Duration
		last := time.Now()
		s := Supervisor{Programs: []Program{{Name: "idle"}}, MinWait: 10 * time.Millisecond, MaxWait: 100 * time.Millisecond}
		set(r, &r.subscribe, func(context.Context, Target) error {
			waits = append(waits, time.Since(last).Round(time.Millisecond))
			last = time.Now()
			if len(waits) == 7 {
				return nil
			}
			return bridge.ErrBusy
		})
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		err := s.Run(ctx, d, func(context.Context, *Generation) error {
			time.Sleep(time.Second)
			last = time.Now()
			return ErrClosed
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 100 * ms, 100 * ms, 10 * ms, 20 * ms}, waits[:9])
		require.NoError(t, d.Close())
	})
}

// healthy is a device without a heartbeat of its own.
type healthy struct{ *rigged }

func (h *healthy) Health() (Health, error) { return Health{}, nil }

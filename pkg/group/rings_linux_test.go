package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

func init() {
	transports["rings"] = func(testing.TB, int) func(int) Transport {
		name := fmt.Sprintf("group-%d-%d", os.Getpid(), names.Add(1))
		return func(int) Transport { return Rings{Name: name} }
	}
	child = func(ctx context.Context) error {
		rank, err := strconv.Atoi(os.Getenv(childEnv))
		if err != nil {
			return err
		}
		return outlive(ctx, rank, Options{Rank: rank, Size: 3, Algorithm: os.Getenv("NFC_GROUP_ALGORITHM")}, os.Getenv("NFC_GROUP_NAME"))
	}
}

// outlive exchanges until rank 1 has been killed, in whatever step and wherever in it,
// and continues without it.
func outlive(ctx context.Context, rank int, o Options, name string) error {
	g, err := Join(ctx, Rings{Name: name}, o)
	if err != nil {
		return err
	}
	defer g.Close()
	for err == nil {
		if err = steps(ctx, g, 1, patterns["mixed"], 10); rank == 1 && g.step == 10 {
			time.AfterFunc(rand.N(3*time.Millisecond), func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
		}
	}
	if !errors.Is(err, ErrGone) && !errors.Is(err, ErrRevoked) {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	if _, err := g.Shrink(ctx); err != nil {
		return err
	}
	if !slices.Equal(g.Members(), []int{0, 2}) {
		return fmt.Errorf("rank %d: members %v", rank, g.Members())
	}
	return steps(ctx, g, 2, patterns["dense"], 5)
}

// TestProcessDies: the kernel reports a killed process to the others, and
// they continue.
func TestProcessDies(t *testing.T) {
	for _, a := range []string{Auto, "isend", "ssend", "send", "send-loop", "isend-irecv", "cpex", "bruck", "allgather", "fixed-buffer", "chunks"} {
		ctx := background(t)
		name := fmt.Sprintf("group-%d-%d", os.Getpid(), names.Add(1))
		var all errs
		for rank := 1; rank < 3; rank++ {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+strconv.Itoa(rank), "NFC_GROUP_NAME="+name, "NFC_GROUP_ALGORITHM="+a)
			cmd.Stderr = os.Stderr
			all.Go(func() error {
				err := cmd.Run()
				if rank == 1 && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
					return nil
				}
				return err
			})
		}
		all.Go(func() error { return outlive(ctx, 0, Options{Size: 3, Algorithm: a}, name) })
		require.NoError(t, all.Wait(), a)
	}
}

// TestRingsRefuse: what a ring cannot be is an option that makes no sense.
func TestRingsRefuse(t *testing.T) {
	for _, r := range []Rings{{Name: "with blanks"}, {Name: "few", Packets: 2}, {Name: "odd", PacketSize: 100}} {
		_, err := Join(t.Context(), r, Options{Size: 2})
		require.ErrorIs(t, err, ErrOptions)
		require.ErrorIs(t, err, ring.ErrConfig)
	}
}

// TestRingsGoneBeforeOpened: a member that ended before another opened the ring to
// it is lost, and that ring never opens.
func TestRingsGoneBeforeOpened(t *testing.T) {
	rings := Rings{Name: fmt.Sprintf("gone-%d", os.Getpid())}
	stays, err := rings.connect(0, 2)
	require.NoError(t, err)
	defer stays.Close()
	l := stays.(*ringLink)
	l.cancel() // as if it had no processor yet
	l.dials.Wait()

	leaves, err := rings.connect(1, 2)
	require.NoError(t, err)
	mustSend(t, leaves, 0, frameHeader{Step: 9}, []byte("last"), idle)
	require.NoError(t, leaves.Close())
	f := mustReceive(t, stays)
	require.Equal(t, "last", string(f.Data))
	stays.Release(&f)
	f = mustReceive(t, stays)
	require.ErrorIs(t, f.End, ErrClosed)
	stays.Release(&f)
	_, err = stays.TrySend(1, frameHeader{}, nil)
	require.ErrorIs(t, err, ErrGone)
}

// TestRingsOutOfDescriptors: a member that cannot open the ring to another one says so at
// once, and does not wait for it.
func TestRingsOutOfDescriptors(t *testing.T) {
	rings := Rings{Name: fmt.Sprintf("out-%d", os.Getpid())}
	l, err := rings.connect(0, 2)
	require.NoError(t, err)
	defer l.Close()
	r := l.(*ringLink)
	r.dialed = append(r.dialed, ringDial{to: 1, failed: fmt.Errorf("open ring: %w", syscall.EMFILE)})
	r.came.Add(1)
	_, err = l.TrySend(1, frameHeader{}, nil)
	require.ErrorIs(t, err, ErrGone)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.True(t, lasting(err))
	require.False(t, lasting(fmt.Errorf("open ring: %w", ring.ErrNotExist)), "it may come yet")
}

// ringPair are both members of a group over rings, of which one waits in some way.
func ringPair(t *testing.T, wait ring.Wait) [2]*ringLink {
	rings := Rings{Name: fmt.Sprintf("pair-%d-%d", os.Getpid(), names.Add(1)), Wait: wait}
	var all [2]*ringLink
	for rank := range all {
		l, err := rings.connect(rank, len(all))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		all[rank] = l.(*ringLink)
	}
	return all
}

// TestRingsDescriptors: a member holds so many for itself, and for each other one.
func TestRingsDescriptors(t *testing.T) {
	const size, own, each = 4, 6, 12 // and one for the process of each other, where it is another one
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(list)
	}
	before := open()
	rings := Rings{Name: fmt.Sprintf("descriptors-%d", os.Getpid())}
	var links []*ringLink
	for rank := range size {
		l, err := rings.connect(rank, size)
		require.NoError(t, err)
		defer l.Close()
		links = append(links, l.(*ringLink))
	}
	for _, l := range links {
		l.dials.Wait()
	}
	const all = size * (own + each*(size-1))
	for watchdog := time.Now().Add(patience); open()-before > all; runtime.Gosched() { // what served to connect ends
		require.True(t, time.Now().Before(watchdog), "%d descriptors, not %d", open()-before, all)
	}
}

// TestRingsSleep: who sleeps at once is woken for a frame in a cell as for one in the
// ring.
func TestRingsSleep(t *testing.T) {
	all := ringPair(t, ring.Park)
	var members errs
	for rank, l := range all {
		members.Go(func() error {
			data := make([]byte, cellData+1)
			for step := range uint64(500) {
				size := cellData + int(step/2%2)
				if uint64(rank) == step%2 {
					mustSend(t, l, 1-rank, frameHeader{Step: step}, data[:size], idle)
					continue
				}
				f := mustReceive(t, l)
				if f.Step != step || len(f.Data) != size {
					return fmt.Errorf("step %d: %d bytes of step %d, %w", step, len(f.Data), f.Step, f.End)
				}
				l.Release(&f)
			}
			return nil
		})
	}
	require.NoError(t, members.Wait())
}

// TestExpect: only the frame that is waited for is found in a cell; what is another one, or
// is elsewhere, or behind one that is held, stays for TryReceive.
func TestExpect(t *testing.T) {
	all := ringPair(t, ring.Adaptive)
	h := frameHeader{Step: 7, Epoch: 1}
	at := func(h frameHeader) string {
		data, some := all[1].expect(0, h)
		require.Equal(t, some, data != nil)
		return string(data)
	}
	take := func(size int) {
		f := mustReceive(t, all[1])
		require.NoError(t, f.End)
		require.Len(t, f.Data, size)
		all[1].Release(&f)
	}
	require.Empty(t, at(h), "nothing was sent")
	all[1].dials.Wait() // the end of a dial wakes, which ends a pause
	all[1].woken.Store(false)
	require.True(t, all[1].pause(0, 0))
	for _, data := range []string{"one", "two", "six"} {
		mustSend(t, all[0], 1, h, []byte(data), idle)
	}
	for _, other := range []frameHeader{{Step: 8, Epoch: 1}, {Step: 7}, {Step: 7, Epoch: 1, Tag: 1}, {Step: 7, Epoch: 1, Op: opBarrier}} {
		require.Empty(t, at(other))
	}
	require.False(t, all[1].pause(0, 0), "nobody is waited for")
	require.False(t, all[1].pause(0, expects))
	for _, data := range []string{"one", "two"} {
		require.Equal(t, data, at(h))
		require.Empty(t, at(h), "the one before is held")
		var f frame
		require.False(t, all[1].TryReceive(&f))
		all[1].giveBack()
	}
	take(3)
	mustSend(t, all[0], 1, h, make([]byte, cellData+1), idle)
	mustSend(t, all[0], 1, h, []byte("last"), idle)
	require.Empty(t, at(h), "the next frame is in the ring")
	require.False(t, all[1].pause(0, 0), "nobody is waited for")
	take(cellData + 1)
	require.Equal(t, "last", at(h))
	all[1].Wait(1, time.Now().Add(time.Millisecond)) // does not poll members whose frames are held
	all[1].giveBack()
	mustSend(t, all[0], 1, h, make([]byte, cellData+1), idle)
	all[1].Wait(1, time.Time{}) // does again
	take(cellData + 1)
	require.NoError(t, all[0].Close())
	require.Empty(t, at(h))
	f := mustReceive(t, all[1])
	require.Equal(t, ErrClosed, f.End)
	require.Empty(t, at(h), "it has ended")
	all[1].Release(&f)
}

// TestCellsCorrupt: a source that writes nonsense is lost.
func TestCellsCorrupt(t *testing.T) {
	for what, spoil := range map[string]func(*cell){
		"size":   func(s *cell) { s.size = cellData + 1 },
		"number": func(s *cell) { s.number.Store(1) },
	} {
		t.Run(what, func(t *testing.T) {
			all := ringPair(t, ring.Adaptive)
			mustSend(t, all[0], 1, frameHeader{}, []byte("first"), idle)
			f := mustReceive(t, all[1])
			all[1].Release(&f)
			mustSend(t, all[0], 1, frameHeader{}, []byte("next"), idle)
			s := all[1].own.of(0)[1]
			spoil(s)
			_, some := all[1].expect(0, frameHeader{})
			require.False(t, some)
			f = mustReceive(t, all[1])
			require.ErrorIs(t, f.End, ErrGone)
			all[1].Release(&f)
			_, err := all[1].TrySend(0, frameHeader{}, nil)
			require.ErrorIs(t, err, ErrGone)
		})
	}
}

// TestCellsOfOthers: memory that claims more members than it has room for is refused.
func TestCellsOfOthers(t *testing.T) {
	s, err := newCells(fmt.Sprintf("cells-%d", os.Getpid()), 0, 2)
	require.NoError(t, err)
	defer s.ring.Close()
	_, err = cellsOf(s.ring)
	require.NoError(t, err)
	for _, size := range []uint64{0, 100, maxSize + 1, 1 << 63} {
		s.info().size = size
		_, err = cellsOf(s.ring)
		require.ErrorIs(t, err, ring.ErrPeer)
	}
}

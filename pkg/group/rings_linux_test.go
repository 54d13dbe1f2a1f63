package group

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"

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

// outlive exchanges until rank 1 has killed itself, and goes on without it.
func outlive(ctx context.Context, rank int, o Options, name string) error {
	g, err := Join(ctx, Rings{Name: name}, o)
	if err != nil {
		return err
	}
	defer g.Close()
	if rank == 1 {
		err = steps(ctx, g, 1, patterns["dense"], 10)
		return errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	if err = steps(ctx, g, 1, patterns["dense"], 20); !errors.Is(err, ErrGone) && !errors.Is(err, ErrRevoked) {
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

// TestProcessDies: the kernel tells the others of a process that is killed, and
// they go on.
func TestProcessDies(t *testing.T) {
	for _, a := range []string{"isend", "ssend", "bruck", "allgather"} {
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
// it is gone, and that ring never comes.
func TestRingsGoneBeforeOpened(t *testing.T) {
	rings := Rings{Name: fmt.Sprintf("gone-%d", os.Getpid())}
	stays, err := rings.Connect(0, 2)
	require.NoError(t, err)
	defer stays.Close()
	l := stays.(*ringLink)
	l.cancel() // as if it had no processor yet
	l.dials.Wait()

	leaves, err := rings.Connect(1, 2)
	require.NoError(t, err)
	mustSend(t, leaves, 0, Header{Step: 9}, []byte("last"), idle)
	require.NoError(t, leaves.Close())
	f := mustReceive(t, stays)
	require.Equal(t, "last", string(f.Data))
	stays.Release(&f)
	f = mustReceive(t, stays)
	require.ErrorIs(t, f.End, ErrClosed)
	stays.Release(&f)
	_, err = stays.TrySend(1, Header{}, nil)
	require.ErrorIs(t, err, ErrGone)
}

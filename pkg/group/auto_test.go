package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/model"
)

// TestSpikeLoad: appendices A and B of the report, as what a member sends: 8 times
// less than is produced on 8 K members.
func TestSpikeLoad(t *testing.T) {
	const cells, synapses, hertz, event = 2 << 20, 1000, 30, 16
	for members, kib := range map[int]float64{128: 983040, 512: 983040, 1024: 960000, 8192: 120000} {
		l := SpikeLoad(cells, members, synapses, hertz, 1000, event)
		all := float64(members) / float64(members-1) // with what stays at the member
		require.InEpsilon(t, kib*1024, l.Packages*l.Bytes*all, 1e-6)
		require.InDelta(t, float64(members-1), l.Packages, 1e-3*float64(members))
	}
	l := SpikeLoad(cells, 8192, synapses, hertz, 1000, event)
	produced := model.ProducedBytes(cells, 8192, hertz*event) * 8192
	require.InDelta(t, 8, produced/(l.Packages*l.Bytes), 0.25)
	require.Equal(t, Load{Members: 1}, SpikeLoad(100, 1, 10, 30, 1, 16))
}

// TestPredict: the shapes that the model must have.
func TestPredict(t *testing.T) {
	at := func(l Load, name string) (rank int) {
		for i, p := range Predict(l, MeshCost()) {
			if p.Algorithm == name {
				return i
			}
		}
		return -1
	}
	large := Load{Members: 64, Frames: 63, Packages: 63, Bytes: 1 << 20}
	require.Equal(t, 0, at(large, "isend"), "nothing but the bytes counts")
	require.Equal(t, 4, at(large, "allgather"))
	small := Load{Members: 1024, Frames: 1023, Packages: 2, Bytes: 16}
	require.Equal(t, 0, at(small, "bruck"), "ten frames in place of a thousand")
	sparse := Load{Members: 64, Frames: 2, Packages: 2, Bytes: 64}
	require.Equal(t, 0, at(sparse, "isend"))
}

// TestPick: trials of equals differ, and the model decides between those.
func TestPick(t *testing.T) {
	require.Equal(t, 0, pick([]float64{10}, 1))
	require.Equal(t, 0, pick([]float64{10, 9.5, 30}, 3), "hardly faster")
	require.Equal(t, 1, pick([]float64{10, 8, 9}, 3))
	require.Equal(t, 2, pick([]float64{10, 8, 7.9}, 3))
	require.Equal(t, 1, pick([]float64{12, 8, 9, 10, 14, 10, 13, 9}, 2), "slower in one round")
	require.Equal(t, 0, pick([]float64{12, 8, 11, 15, 14, 16, 13, 9}, 2), "faster in two rounds")
}

// TestBestTrials: the fastest trial of a candidate counts, as all members took it
// together: either of them was late in a trial of "luck", and short in it.
func TestBestTrials(t *testing.T) {
	require.Equal(t, []float64{10, 8}, bestTrials([]float64{12, 9, 10, 8, 11, 30}, 2))
	register(Algorithm{Name: "chooses", start: stateless(func(s *exchangeStep) error {
		a := auto{names: []string{"even", "luck"}, run: make([]exchanger, 2)}
		a.times = [][]float64{{10, 2, 10, 20}, {10, 20, 10, 2}}[s.Rank()]
		if err := a.choose(s); err != nil {
			return err
		}
		return isend(s)
	})})
	defer func() { registry.all = registry.all[:len(registry.all)-1] }()
	play(t, "mesh", Options{Size: 2, Algorithm: "chooses"}, func(ctx context.Context, g *Group) error {
		_, err := g.Exchange(ctx, nil)
		if s := g.Stats(); err == nil && s.Algorithm != "even" {
			err = fmt.Errorf("it chose %s: %s", s.Algorithm, s.Why)
		}
		return err
	})
}

// TestAutoAgrees: all members choose the same, say why, and choose again when the
// load is another one.
func TestAutoAgrees(t *testing.T) {
	var mu sync.Mutex
	chosen := make(map[string]map[string]int)
	play(t, "mesh", Options{Size: 4}, func(ctx context.Context, g *Group) error {
		for phase, p := range []pattern{patterns["sparse"], func(*rand.Rand, int, int) int { return 1000 }} {
			for step := range 900 {
				in, err := g.Exchange(ctx, outOf(9, p, step%5, g))
				if err == nil {
					err = checkIn(9, p, step%5, g, in)
				}
				if err != nil {
					return err
				}
			}
			s := g.Stats()
			mu.Lock()
			key := fmt.Sprint("phase ", phase)
			if chosen[key] == nil {
				chosen[key] = make(map[string]int)
			}
			chosen[key][s.Algorithm+": "+s.Why]++
			mu.Unlock()
			if s.Steps < uint64(900*(phase+1)) || s.BytesSent == 0 || s.Time == 0 {
				return errors.New("no stats")
			}
		}
		return nil
	})
	require.Len(t, chosen, 2)
	for phase, all := range chosen {
		require.Len(t, all, 1, phase)
		for why, members := range all {
			require.Contains(t, why, "measured")
			require.Equal(t, 4, members)
		}
	}
	require.NotEqual(t, chosen["phase 0"], chosen["phase 1"])
}

func TestRegister(t *testing.T) {
	require.Panics(t, func() { register(Algorithm{Name: "isend"}) })
	deaf := Algorithm{Name: "deaf", start: stateless(func(*exchangeStep) error { return nil })}
	register(deaf)
	defer func() { registry.all = registry.all[:len(registry.all)-1] }()
	mesh := NewMesh(2)
	var all errs
	for rank := range 2 {
		all.Go(func() error {
			g, err := Join(background(t), mesh, Options{Rank: rank, Size: 2, Algorithm: "deaf"})
			if err != nil {
				return err
			}
			defer g.Close()
			_, err = g.Exchange(background(t), nil)
			if errors.Is(err, ErrRevoked) {
				return nil
			}
			return reason(err, ErrOptions, "exchange", 0, 1-rank)
		})
	}
	require.NoError(t, all.Wait())
}

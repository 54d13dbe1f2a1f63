package links

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// FabricAccess is putting to a window of a neighbour and getting from it, one call
// after the other, by the size of calls: median time and what that carries.
type FabricAccess struct {
	Size   int     `json:"bytes"`
	PutNs  float64 `json:"put_p50_ns"`
	PutMBs float64 `json:"put_mb_s"`
	GetNs  float64 `json:"get_p50_ns"`
	GetMBs float64 `json:"get_mb_s"`
}

// FabricLookup is how long it takes to find a page of a window, of so many that are
// used at random, by each way.
type FabricLookup struct {
	Pages    int     `json:"pages"`
	LinearNs float64 `json:"linear_ns"`
	HashedNs float64 `json:"hashed_ns"`
	CachedNs float64 `json:"cached_ns"`
	Hits     float64 `json:"cache_hits"`
}

// fabricAccessSizes are of puts and gets, in bytes.
var fabricAccessSizes = []int{8, 4096, 64 << 10, 1 << 20}

// fabricLookupPages are used at random; the cache holds 64.
var fabricLookupPages = []int{16, 64, 256, 4096}

// access puts to a neighbour of node 0 and gets what it put.
func (b *fabricBench) access(ctx context.Context, r *FabricReport) error {
	mem := make([]byte, slices.Max(fabricAccessSizes))
	w, err := b.m.Window(1, mem, mesh.Read|mesh.Write)
	if err != nil {
		return err
	}
	defer w.Revoke()
	for _, size := range fabricAccessSizes {
		data, got := bytes.Repeat([]byte{byte(size >> 8), 1, 2, 3}, size/4), make([]byte, size)
		a := FabricAccess{Size: size}
		if a.PutNs, err = b.median(func() error { return b.m.Put(ctx, 0, w.Remote(), 0, data) }); err != nil {
			return err
		}
		if a.GetNs, err = b.median(func() error { return b.m.Get(ctx, 0, w.Remote(), 0, got) }); err != nil {
			return err
		}
		if !bytes.Equal(data, got) {
			return errors.New("what was got is not what was put")
		}
		a.PutMBs, a.GetMBs = float64(size)/a.PutNs*1e3, float64(size)/a.GetNs*1e3
		r.Access = append(r.Access, a)
	}
	return nil
}

// median is the median time of calls in half of the time of a run, in nanoseconds.
func (b *fabricBench) median(fn func() error) (float64, error) {
	var took []time.Duration
	for begin := time.Now(); len(took) == 0 || time.Since(begin) < b.o.time/2; {
		at := time.Now()
		if err := fn(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	return float64(took[len(took)/2]), nil
}

// lookups measures the tables of windows.
func (b *fabricBench) lookups(_ context.Context, r *FabricReport) error {
	for _, pages := range fabricLookupPages {
		l, err := mesh.MeasureLookups(pages, int(b.o.time/time.Microsecond))
		if err != nil {
			return err
		}
		r.Lookups = append(r.Lookups, FabricLookup{Pages: pages, LinearNs: l.Linear, HashedNs: l.Hashed, CachedNs: l.Cached, Hits: l.Hits})
	}
	return nil
}

func (r *FabricReport) accessTable(w io.Writer) {
	fmt.Fprintln(w)
	t := texttable.Numbers("put and get of", "put, p50", "put", "get, p50", "get")
	for _, a := range r.Access {
		t.Add(cli.SizeText(a.Size), fmt.Sprintf("%.1f µs", a.PutNs/1e3), fmt.Sprintf("%.0f MB/s", a.PutMBs),
			fmt.Sprintf("%.1f µs", a.GetNs/1e3), fmt.Sprintf("%.0f MB/s", a.GetMBs))
	}
	t.Write(w)
	fmt.Fprintln(w)
	t = texttable.Numbers("pages at random", "window searched", "hashed", "page cached", "of those found there")
	for _, l := range r.Lookups {
		t.Add(fmt.Sprint(l.Pages), fmt.Sprintf("%.1f ns", l.LinearNs), fmt.Sprintf("%.1f ns", l.HashedNs),
			fmt.Sprintf("%.1f ns", l.CachedNs), fmt.Sprintf("%.0f %%", 100*l.Hits))
	}
	t.Write(w)
}

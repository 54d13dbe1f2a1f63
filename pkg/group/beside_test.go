package group

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"sync"
	"testing"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// joined returns all members of a group.
func joined(ctx context.Context, size int) (members []*Group, err error) {
	mesh := NewMesh(size)
	members, errs := make([]*Group, size), make([]error, size)
	var wg sync.WaitGroup
	for rank := range size {
		wg.Go(func() { members[rank], errs[rank] = Join(ctx, mesh, Options{Rank: rank, Size: size}) })
	}
	wg.Wait()
	return members, errors.Join(errs...)
}

// TestBeside: what may be called beside each other is, while others exchange.
func TestBeside(t *testing.T) {
	beside.Run(t, beside.Suite{
		Rounds: 100,
		Open: func(ctx context.Context) (*beside.World, error) {
			members, err := joined(ctx, 3)
			if err != nil {
				return nil, err
			}
			var others sync.WaitGroup
			for _, g := range members[1:] {
				others.Go(func() {
					for err := error(nil); err == nil; {
						_, err = g.Exchange(ctx, []Package{{Rank: 0, Data: []byte("data")}})
					}
				})
			}
			return &beside.World{
				Objects: []beside.Object{{Name: "Group", Value: members[0]}},
				Arguments: map[reflect.Type]func() any{
					reflect.TypeFor[int]():                  func() any { return 1 },
					reflect.TypeFor[[]byte]():               func() any { return make([]byte, 8) },
					reflect.TypeFor[[]Package]():            func() any { return []Package{{Rank: 1, Data: make([]byte, 8)}} },
					reflect.TypeFor[func(acc, in []byte)](): func() any { return func(acc, in []byte) {} },
				},
				Drop: map[reflect.Type]func(any){
					reflect.TypeFor[iter.Seq2[[]Package, error]](): func(v any) {
						for range v.(iter.Seq2[[]Package, error]) {
						}
					},
					reflect.TypeFor[iter.Seq2[Package, error]](): func(v any) {
						for range v.(iter.Seq2[Package, error]) {
						}
					},
				},
				End: func() error {
					others.Wait()
					return errors.Join(members[0].Close(), members[1].Close(), members[2].Close())
				},
			}, nil
		},
		Once: []string{"Group.Close", "Group.Shrink"},
		Ends: []string{"Group.Close"},
		Alone: []string{
			"Group.Allgather", "Group.Allgatherv", "Group.Barrier", "Group.Exchange", "Group.Flush", "Group.Packages",
			"Group.Reduce", "Group.Shrink",
		},
	})
}

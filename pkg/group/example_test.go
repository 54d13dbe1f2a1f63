package group_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// Four members send their rank to the next one, step by step.
func Example() {
	mesh := group.NewMesh(4)
	var all sync.WaitGroup
	for rank := range 4 {
		all.Go(func() {
			g, _ := group.Join(context.Background(), mesh, group.Options{Rank: rank, Size: 4})
			defer g.Close()
			sum := rank
			for range 3 {
				in, _ := group.Exchange(context.Background(), g, []group.Batch[int]{{Rank: (rank + 1) % 4, Events: []int{sum}}})
				sum += in[0].Events[0]
			}
			if rank == 0 {
				fmt.Println(sum)
			}
		})
	}
	all.Wait()
	// Output: 16
}

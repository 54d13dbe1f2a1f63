//go:build cgo

package pool_test

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
)

// Callers share the processes of a program. A program that is loaded is named in Images.
func Example() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	p, err := pool.New(ctx, dev, pool.Options{
		Program:   nfcomms.Program{Name: "loopback"}, // answers with its input
		Processes: 4,
	})
	if err != nil {
		panic(err)
	}
	defer p.Close()
	out := make([]byte, 100)
	n, err := p.Do(ctx, []byte("bytes"), out)
	fmt.Println(string(out[:n]), err)
	sum, err := pool.Call[float64, float64](ctx, p, 2.5)
	fmt.Println(sum, err)
	// Output:
	// bytes <nil>
	// 2.5 <nil>
}

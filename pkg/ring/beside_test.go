//go:build linux

package ring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// TestBeside: what may be called beside each other is.
func TestBeside(t *testing.T) {
	var number atomic.Int64
	beside.Run(t, beside.Suite{
		Rounds: 100,
		Open: func(ctx context.Context) (*beside.World, error) {
			r, err := Create(fmt.Sprintf("beside-%d-%d", os.Getpid(), number.Add(1)), Config{}) // others may run this test
			if err != nil {
				return nil, err
			}
			w, err := r.Writer(ctx)
			if err != nil {
				return nil, err
			}
			d, err := r.Reader(ctx)
			if err != nil {
				return nil, err
			}
			return &beside.World{
				Objects: []beside.Object{{Name: "Ring", Value: r}, {Name: "Writer", Value: w}, {Name: "Reader", Value: d}},
				Arguments: map[reflect.Type]func() any{
					reflect.TypeFor[int]():      func() any { return 8 },
					reflect.TypeFor[[]byte]():   func() any { return make([]byte, 64) },
					reflect.TypeFor[[][]byte](): func() any { return [][]byte{make([]byte, 8), make([]byte, 9)} },
				},
				End: func() error { return errors.Join(w.Close(), d.Close(), r.Close()) },
			}, nil
		},
		Once: []string{"Ring.Close", "Writer.Close", "Reader.Close"},
		Ends: []string{"Ring.Close", "Writer.Close", "Reader.Close"},
		Alone: []string{
			"Writer.Commit", "Writer.Flush", "Writer.Reserve", "Writer.TryCommit", "Writer.Write", "Writer.WriteBatch",
			"Reader.Peek", "Reader.PeekBatch", "Reader.Read", "Reader.Release", "Reader.TryPeek",
		},
	})
}

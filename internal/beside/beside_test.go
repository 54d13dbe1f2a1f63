package beside

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// counted is an object of three methods, one of which must not run beside itself.
type counted struct{ calls, inside, ended atomic.Int64 }

func (c *counted) Add(n int) { c.calls.Add(int64(n)) }

func (c *counted) Alone(ctx context.Context) error {
	if c.inside.Add(1) > 1 {
		panic("beside itself")
	}
	<-ctx.Done()
	c.inside.Add(-1)
	return ctx.Err()
}

func (c *counted) Close() error { c.ended.Add(1); return nil }

// odd takes and returns what nobody has a recipe for.
type odd struct{}

func (odd) Takes(complex128) {}
func (odd) Returns() func()  { return nil }

func worldOf(name string, value any) *World {
	return &World{
		Objects:   []Object{{Name: name, Value: value}},
		Arguments: map[reflect.Type]func() any{reflect.TypeFor[int](): func() any { return 1 }},
		End:       func() error { return nil },
	}
}

// TestEveryPairRuns: there are as many rounds as that takes, and Once and Alone are kept.
func TestEveryPairRuns(t *testing.T) {
	var all []*counted
	open := make(chan *counted, 1000)
	Run(t, Suite{
		Once: []string{"counted.Close"}, Ends: []string{"counted.Close"}, Alone: []string{"counted.Alone"},
		Open: func(context.Context) (*World, error) {
			c := new(counted)
			open <- c
			return worldOf("counted", c), nil
		},
	})
	close(open)
	for c := range open {
		all = append(all, c)
	}
	calls, ended := int64(0), int64(0)
	for _, c := range all {
		calls, ended = calls+c.calls.Load(), ended+c.ended.Load()
	}
	require.NotZero(t, calls)
	require.NotZero(t, ended)
	require.LessOrEqual(t, ended, int64(2*together*len(all)))
}

// TestRecipesAreAsked: a method that is new, and takes or returns what no recipe is for, is an error.
func TestRecipesAreAsked(t *testing.T) {
	r := &run{count: make(map[pair]int)}
	_, err := r.methodsOf(worldOf("odd", odd{}))
	require.ErrorContains(t, err, "odd.Takes takes a complex128")
	require.ErrorContains(t, err, "odd.Returns returns a func()")
	r = &run{Suite: Suite{Once: []string{"counted.Gone"}}, count: make(map[pair]int)}
	_, err = r.methodsOf(worldOf("counted", new(counted)))
	require.ErrorContains(t, err, "no method counted.Gone")
}

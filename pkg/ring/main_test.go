//go:build linux

package ring

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// A test starts its own binary as the other process: childEnv names the part
// that it plays.
const childEnv = "NFC_RING_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		if err := children[part](context.Background(), os.Getenv("NFC_RING_NAME")); err != nil {
			fmt.Fprintln(os.Stderr, part+":", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds what should end by itself: a watchdog, not a measurement.
const patience = time.Minute

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

var names atomic.Int64

func newName() string {
	return "test-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(names.Add(1), 10)
}

// create makes a ring of so many packets that ends with the test.
func create(t *testing.T, c Config) *Ring {
	r, err := Create(newName(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// pair attaches both sides.
func pair(t *testing.T, r *Ring) (*Writer, *Reader) {
	ctx := background(t)
	d, err := r.Reader(ctx)
	require.NoError(t, err)
	w, err := r.Writer(ctx)
	require.NoError(t, err)
	return w, d
}

// over is a context that has ended: calls that would wait fail instead.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

package logqueue

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slow is a handler that waits for leave to return before each record.
type slow struct {
	slog.Handler
	leave func()
}

func (h slow) Handle(ctx context.Context, r slog.Record) error {
	h.leave()
	return h.Handler.Handle(ctx, r)
}

// lines gathers what a handler wrote.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.buf.String()), "\n")
}

func newSlow(l *lines, level slog.Level, leave func()) *Queue {
	text := slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, AddSource: true})
	return New(slog.New(slow{text, leave}))
}

// TestOrder: records come in order, with their level, attributes and source;
// records below the level of the handler are not handled.
func TestOrder(t *testing.T) {
	var l lines
	q := newSlow(&l, slog.LevelInfo, func() {})
	q.Info("one", "a", 1)
	q.Error("two")
	q.Flush()
	got := l.list()
	require.Len(t, got, 2)
	require.Contains(t, got[0], `level=INFO`)
	require.Contains(t, got[0], `logqueue_test.go`)
	require.Contains(t, got[0], `msg=one a=1`)
	require.Contains(t, got[1], `level=ERROR`)
	require.Contains(t, got[1], `msg=two`)
	q = newSlow(&l, slog.LevelError, func() { t.Error("handled") })
	q.Info("three")
	q.Flush()
}

// TestNone: no logger is a queue that discards.
func TestNone(t *testing.T) {
	q := New(nil)
	q.Info("x")
	q.Error("x")
	q.Flush()
	require.Zero(t, q.Dropped())
}

// TestFull: a handler that stands still holds up no caller; what finds no room is
// counted, and said once there is room.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		stuck := make(chan struct{})
		q := newSlow(&l, slog.LevelInfo, func() { <-stuck })
		q.Info("first")
		synctest.Wait() // the handler has it
		for range capacity + 7 {
			q.Info("more")
		}
		require.EqualValues(t, 7, q.Dropped())
		start := time.Now()
		q.Flush()
		require.Equal(t, patience, time.Since(start), "a handler that blocks is given up")
		close(stuck)
		q.Flush()
		synctest.Wait()
		got := l.list()
		require.Len(t, got, 1+capacity+1)
		require.Contains(t, got[len(got)-1], "level=WARN")
		require.Contains(t, got[len(got)-1], "records=7")
		q.Info("again")
		q.Flush()
		require.Contains(t, l.list()[len(got)], "again")
		require.EqualValues(t, 7, q.Dropped())
	})
}

// TestFlushWaitsWhileRecordsPass: each record has its own time.
func TestFlushWaitsWhileRecordsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		q := newSlow(&l, slog.LevelInfo, func() { time.Sleep(patience - time.Millisecond) })
		for range 10 {
			q.Info("x")
		}
		q.Flush()
		require.Len(t, l.list(), 10)
	})
}

// TestFlushInsideTheHandler: a handler that closes its device gets an answer.
func TestFlushInsideTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		var q *Queue
		q = newSlow(&l, slog.LevelInfo, func() { q.Flush() })
		q.Info("x")
		q.Flush()
		synctest.Wait()
		time.Sleep(patience)
		synctest.Wait()
		require.Len(t, l.list(), 1)
	})
}

// TestManyAtOnce: records of many goroutines are each handled once.
func TestManyAtOnce(t *testing.T) {
	var l lines
	q := newSlow(&l, slog.LevelInfo, func() {})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				q.Info("x")
			}
		})
	}
	wg.Wait()
	q.Flush()
	require.Len(t, l.list(), 800)
}

// TestLoggerOfAQueue: a logger of a queue is that queue, so that both parts of a back end have one.
func TestLoggerOfAQueue(t *testing.T) {
	var out lines
	q := New(slog.New(slog.NewTextHandler(&out, nil)))
	require.Same(t, q, New(q.Logger()))
	q.Logger().Info("by the logger")
	q.Flush()
	require.Contains(t, out.buf.String(), "by the logger")
	require.Nil(t, New((*Queue)(nil).Logger()))
}

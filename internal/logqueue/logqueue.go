package logqueue

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

const (
	// capacity is how many records wait at most. A pipe of a device's log lines
	// holds about a thousand of them.
	capacity = 4096
	// patience is how long Flush waits for one record to be handled.
	patience = 250 * time.Millisecond
)

// Queue passes records on in order. Adding one never waits: a record that finds
// the queue full is dropped and counted, and the handler gets to know how many
// once there is room. The zero value of its pointer, nil, discards everything.
type Queue struct {
	handler slog.Handler

	mu      sync.Mutex // guards what follows
	records []slog.Record
	running bool          // a goroutine hands records on; it ends with the last
	handled chan struct{} // closed after each record; nil while nobody flushes
	dropped uint64
	said    uint64 // drops that the handler knows of
}

// New returns a queue for a logger; nil for none. For a logger that Logger made it is the same queue.
func New(l *slog.Logger) *Queue {
	if l == nil {
		return nil
	}
	if h, ok := l.Handler().(queued); ok {
		return h.queue
	}
	return &Queue{handler: l.Handler()}
}

// queued is the user's handler behind a queue.
type queued struct {
	slog.Handler
	queue *Queue
}

func (h queued) Handle(_ context.Context, r slog.Record) error {
	h.queue.push(r)
	return nil
}

// Logger returns a logger whose records pass through the queue; nil for the nil queue. It is for
// New.
func (q *Queue) Logger() *slog.Logger {
	if q == nil {
		return nil
	}
	return slog.New(queued{q.handler, q})
}

// Info logs at slog.LevelInfo. It takes no lock that a handler holds.
func (q *Queue) Info(msg string, args ...any) { q.add(slog.LevelInfo, msg, args) }

// Error logs at slog.LevelError. It takes no lock that a handler holds.
func (q *Queue) Error(msg string, args ...any) { q.add(slog.LevelError, msg, args) }

// Dropped counts the records that found no room.
func (q *Queue) Dropped() uint64 {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// add queues a record for a caller of Info or Error.
func (q *Queue) add(level slog.Level, msg string, args []any) {
	if q == nil {
		return
	}
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	r := slog.NewRecord(time.Now(), level, msg, pc[0])
	r.Add(args...)
	q.push(r)
}

func (q *Queue) push(r slog.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) == capacity {
		q.dropped++
		return
	}
	q.records = append(q.records, r)
	if !q.running {
		q.running = true
		go q.run()
	}
}

// run hands records on until there is none.
func (q *Queue) run() {
	for {
		r, ok := q.next()
		if !ok {
			return
		}
		q.handle(r)
	}
}

// next returns the record to handle now; drops are reported as soon as what was
// queued before them is handled.
func (q *Queue) next() (slog.Record, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handled != nil {
		close(q.handled)
		q.handled = nil
	}
	if len(q.records) > 0 {
		r := q.records[0]
		q.records[0] = slog.Record{}
		q.records = q.records[1:]
		return r, true
	}
	q.records = nil
	if n := q.dropped - q.said; n > 0 {
		q.said = q.dropped
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "log records dropped: the handler is too slow", 0)
		r.Add("records", n)
		return r, true
	}
	q.running = false
	return slog.Record{}, false
}

// handle runs the user's code; no lock is held.
func (q *Queue) handle(r slog.Record) {
	ctx := context.Background()
	if q.handler.Enabled(ctx, r.Level) {
		_ = q.handler.Handle(ctx, r) // there is nobody to tell
	}
}

// Flush waits until every record is handled. It gives up on a handler that
// takes longer than patience for one: a handler that blocks for ever, or that calls Flush itself,
// must not hold its caller. Queued records are handled even then, if the handler continues.
func (q *Queue) Flush() {
	if q == nil {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		handled := q.wait()
		if handled == nil {
			return
		}
		select {
		case <-handled:
			timer.Reset(patience)
		case <-timer.C:
			return
		}
	}
}

// wait returns what is closed after the next record, nil if there is none.
func (q *Queue) wait() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.running {
		return nil
	}
	if q.handled == nil {
		q.handled = make(chan struct{})
	}
	return q.handled
}

package access

import (
	"context"
	"time"
)

// nextMessage is the time for a message of a stream after its first. An upload
// that pauses for longer is at its end as well.
const nextMessage = 30 * time.Second

// arrival ends a call whose request does not arrive. The part that has arrived is kept in memory
// until then.
type arrival struct {
	timer *time.Timer
}

type arrivalKey struct{}

// expect returns a context that ends unless the request has arrived within a time.
func expect(ctx context.Context, within time.Duration) context.Context {
	if within <= 0 {
		return ctx
	}
	ctx, end := context.WithCancel(ctx)
	return context.WithValue(ctx, arrivalKey{}, &arrival{time.AfterFunc(within, end)})
}

// arrivalOf returns that of a call, nil for one whose request has all its time.
func arrivalOf(ctx context.Context) *arrival {
	a, _ := ctx.Value(arrivalKey{}).(*arrival)
	return a
}

// came is called once a message has arrived.
func (a *arrival) came() {
	if a != nil {
		a.timer.Stop()
	}
}

// next is called when another message of a stream is awaited.
func (a *arrival) next() {
	if a != nil {
		a.timer.Reset(nextMessage)
	}
}

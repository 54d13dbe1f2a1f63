package group

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Reasons of an [*Error].
var (
	// ErrLate: the step did not end in time; Ranks are those waited for.
	ErrLate = errors.New("step is late")
	// ErrCanceled: the context ended; Ranks are those waited for.
	ErrCanceled = errors.New("step was canceled")
	// ErrGone: the members in Ranks have ended, or left the group.
	ErrGone = errors.New("member is gone")
	// ErrRevoked: the members in Ranks gave the step up.
	ErrRevoked = errors.New("member gave the step up")
	// ErrDisagree: the members in Ranks do something else in this step, or
	// joined with other options.
	ErrDisagree = errors.New("members disagree")
	// ErrRankTaken: another endpoint has joined under this rank.
	ErrRankTaken = errors.New("rank is taken")
	// ErrRank: a rank outside the group, one's own, one that is no target, or
	// one that has two packages.
	ErrRank = errors.New("bad rank")
	// ErrEventSize: bytes that are no whole number of events.
	ErrEventSize = errors.New("no whole number of events")
	// ErrTooLarge: packages that the transport cannot carry in one frame.
	ErrTooLarge = errors.New("too large for the transport")
	// ErrMemory: memory of the caller that is not mapped, protected, or of a file that was cut
	// short. The step has not begun.
	ErrMemory = errors.New("memory cannot be reached")
	// ErrOptions: options that make no sense.
	ErrOptions = errors.New("bad options")
	// ErrBroken: a step failed before; Shrink starts anew, without the lost members.
	ErrBroken = errors.New("group is broken")
	// ErrBusy: another call on this member has not returned.
	ErrBusy = errors.New("member is busy")
	// ErrClosed: the member has left.
	ErrClosed = net.ErrClosed
)

// Error is the error of every call of this package. errors.Is finds its reason,
// and the end of the context where that was it.
type Error struct {
	// Op is what was called.
	Op string
	// Rank is the member that reports.
	Rank int
	// Step is the step that failed.
	Step uint64
	// Ranks are the members that the error is about, in rising order.
	Ranks []int
	// Err is the reason.
	Err error
}

// Error returns one line. Several reasons are separated by "; ".
func (e *Error) Error() string {
	text := fmt.Sprintf("group: %s: rank %d: step %d: ", e.Op, e.Rank, e.Step)
	if len(e.Ranks) > 0 {
		text += ranksText(e.Ranks) + ": "
	}
	return text + strings.ReplaceAll(e.Err.Error(), "\n", "; ")
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a deadline was the reason.
func (e *Error) Timeout() bool {
	return errors.Is(e.Err, ErrLate) || errors.Is(e.Err, context.DeadlineExceeded)
}

// ranksShown bounds the ranks in the text of an error; the field has them all.
const ranksShown = 8

func ranksText(ranks []int) string {
	var b strings.Builder
	b.WriteString("rank")
	if len(ranks) > 1 {
		b.WriteByte('s')
	}
	for i, r := range ranks {
		if i == ranksShown {
			fmt.Fprintf(&b, " and %d more", len(ranks)-i)
			break
		}
		fmt.Fprintf(&b, " %d", r)
	}
	return b.String()
}

// about is an error about some ranks; its caller fills in the rest.
func about(err error, ranks ...int) *Error { return &Error{Ranks: ranks, Err: err} }

func aboutf(ranks []int, reason error, format string, args ...any) *Error {
	return about(fmt.Errorf("%w: %s", reason, fmt.Sprintf(format, args...)), ranks...)
}

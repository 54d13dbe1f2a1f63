package bridge

import (
	"context"
	"errors"
)

// Caller is a Channel whose messages may be questions: the answer to one commits it.
type Caller interface {
	Channel
	// Call gives msg, of at most abi.PayloadSize bytes, as a question, and takes its answer into buf.
	// The error is ErrWithdrawn if no process took the question, and an *UnansweredError if one did.
	// With ErrTooLarge the answer is longer than buf, and dropped.
	Call(ctx context.Context, msg, buf []byte) (Answer, error)
	// TryCall is Call if the target waits for a question now; else it returns false. For waiter see
	// TrySend.
	TryCall(ctx context.Context, msg, buf []byte, waiter chan<- struct{}) (Answer, bool, error)
}

// Answer is the outcome of a question that a process took.
type Answer struct {
	// Size is the length of the answer in bytes.
	Size int
	// Message means that the answer, if any, is a message which is to be received. The process has
	// acknowledged the question by a plain read, or the channel has messages alone.
	Message bool
}

// ErrUnanswered is a question that a process took and that has no answer.
var ErrUnanswered error = &kind{text: "taken, but not answered"}

// UnansweredError is returned when a call ended after a process had taken its question.
type UnansweredError struct {
	// Cause is the context's error, or why the process will not answer: it closed the half, or ended.
	Cause error
	// Late is true if the process may still offer its answer, as a message, which then is not that
	// of a later question. Else there will be none, and the process learns at its reply that nobody
	// waits.
	Late bool
}

func (e *UnansweredError) Error() string {
	if e.Late {
		return "taken, and the answer may come late: " + e.ended().Error()
	}
	return "taken, but not answered: " + e.ended().Error()
}

// ended returns what ended the call. A withdrawal was that of the answer, not of the question.
func (e *UnansweredError) ended() error {
	var withdrawn *WithdrawnError
	if errors.As(e.Cause, &withdrawn) {
		return withdrawn.Cause
	}
	return e.Cause
}

// Unwrap returns ErrUnanswered and the cause.
func (e *UnansweredError) Unwrap() []error { return []error{ErrUnanswered, e.ended()} }

// Timeout reports whether a deadline was the cause.
func (e *UnansweredError) Timeout() bool { return errors.Is(e.Cause, context.DeadlineExceeded) }

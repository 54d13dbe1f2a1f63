package bridge

import "context"

// Beginner is a Channel that begins transfers without waiting for them, so that one
// goroutine has transfers of many channels under way. What needs its caller on the way
// cannot be begun so; nor can anything while the half is another call's.
//
// After a Begin that returned true the half and the buffer are the caller's until End
// has reported the end: it must be called until then, by one goroutine at a time. The
// context and the buffer are those of Begin.
type Beginner interface {
	Channel
	// BeginSendInd offers data as SendInd does. False: nothing has begun, and SendInd
	// tells why or does it.
	BeginSendInd(ctx context.Context, data []byte) bool
	// EndSendInd returns the result of SendInd. ended is false if it goes on: unless wait
	// is set it is waited for a moment only.
	EndSendInd(ctx context.Context, data []byte, wait bool) (ended bool, err error)
	// BeginReceiveInd is ready to take data as ReceiveInd does. False: nothing has begun,
	// and ReceiveInd tells why or does it.
	BeginReceiveInd(ctx context.Context, data []byte) bool
	// EndReceiveInd returns the result of ReceiveInd; for wait see EndSendInd. What the
	// device offers instead of the transfer is taken, or refused, only with wait.
	EndReceiveInd(ctx context.Context, data []byte, wait bool) (ended bool, err error)
}

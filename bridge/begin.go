package bridge

import "context"

// Beginner is a Channel that begins transfers without waiting for them, so that one goroutine has
// transfers of many channels under way. A transfer that needs its caller before the end cannot be
// begun this way; nor can any while another call has the half.
//
// After a Begin that returned true the half and the buffer are the caller's until End has reported
// the end. One goroutine at a time must call End until then. The context and the buffer are those
// of Begin.
type Beginner interface {
	Channel
	// BeginSendInd offers data as SendInd does. False: nothing has begun, and SendInd returns the
	// error or sends.
	BeginSendInd(ctx context.Context, data []byte) bool
	// EndSendInd returns the result of SendInd. ended is false if the transfer is still running:
	// unless wait is set the call waits a moment only.
	EndSendInd(ctx context.Context, data []byte, wait bool) (ended bool, err error)
	// BeginReceiveInd is ready to take data as ReceiveInd does. False: nothing has begun, and
	// ReceiveInd returns the error or receives.
	BeginReceiveInd(ctx context.Context, data []byte) bool
	// EndReceiveInd returns the result of ReceiveInd; for wait see EndSendInd. Another offer of the
	// device in place of the transfer is taken, or refused, only with wait.
	EndReceiveInd(ctx context.Context, data []byte, wait bool) (ended bool, err error)
}

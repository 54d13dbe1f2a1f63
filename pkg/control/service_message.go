package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// messageService implements nfcomms.v1.MessageService.
type messageService struct {
	nfcommsv1.UnsafeMessageServiceServer
	s *Server
}

// bulkHint names the calls for what does not pass here.
const bulkHint = "bulk data goes through SendInd and ReceiveInd in the process that has the device open"

// fits refuses payloads that are no message.
func fits(payload []byte) error {
	if n := len(payload); n > nfcomms.MessageSize {
		return &FieldError{"payload", fmt.Errorf("message of %d bytes, at most %d (%s): %w", n, nfcomms.MessageSize, bulkHint, nfcomms.ErrTooLarge)}
	}
	return nil
}

// bulk adds the hint to the errors that say that the other end means bulk data.
func bulk(err error) error {
	if errors.Is(err, nfcomms.ErrKindMismatch) || errors.Is(err, nfcomms.ErrTooLarge) {
		return fmt.Errorf("%w (%s)", err, bulkHint)
	}
	return err
}

// SendMessage gives a message to a target.
func (v messageService) SendMessage(ctx context.Context, req *nfcommsv1.SendMessageRequest) (*nfcommsv1.SendMessageResponse, error) {
	if err := fits(req.GetPayload()); err != nil {
		return nil, err
	}
	err := v.call(ctx, req, abi.H2D, func(ctx context.Context, ch *nfcomms.Channel) error {
		return ch.Send(ctx, req.GetPayload())
	})
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.SendMessageResponse{}, nil
}

// ReceiveMessage takes a message from a target.
func (v messageService) ReceiveMessage(ctx context.Context, req *nfcommsv1.ReceiveMessageRequest) (*nfcommsv1.ReceiveMessageResponse, error) {
	buf := make([]byte, nfcomms.MessageSize)
	n := 0
	err := v.call(ctx, req, abi.D2H, func(ctx context.Context, ch *nfcomms.Channel) (err error) {
		n, err = ch.Receive(ctx, buf)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.ReceiveMessageResponse{Payload: buf[:n]}, nil
}

// messageRequest is what the requests have in common.
type messageRequest interface {
	GetName() string
	GetTimeout() *durationpb.Duration
}

// call makes a call on one half of a remote channel within the time of its
// request.
func (v messageService) call(ctx context.Context, req messageRequest, half abi.Direction, f func(context.Context, *nfcomms.Channel) error) error {
	d, t, err := v.s.at(req.GetName())
	if err != nil {
		return err
	}
	const forever = time.Duration(-1)
	timeout, err := durationOf("timeout", req.GetTimeout(), forever)
	if err != nil {
		return err
	}
	ch, finish, err := d.call(t)
	if err != nil {
		return err
	}
	var over [2]bool
	defer func() { finish(over) }()
	if timeout != forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err = f(ctx, ch)
	over[half] = errors.Is(err, nfcomms.ErrClosed)
	if over[abi.H2D] {
		over[abi.D2H] = receiveOver(ch)
	}
	return bulk(err)
}

// lookTime is how long receiveOver waits for a half that is not closed.
const lookTime = 10 * time.Millisecond

// receiveOver reports whether a channel has nothing to give any more: the half
// is closed, and nothing is offered.
func receiveOver(ch *nfcomms.Channel) bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	_, err := ch.Next(ctx)
	return errors.Is(err, nfcomms.ErrClosed)
}

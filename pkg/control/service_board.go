package control

import (
	"cmp"
	"context"
	"time"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// Waits for interrupts, and the width of a register whose request names none.
const (
	interruptWait    = 10 * time.Second
	interruptLongest = time.Minute
	registerWidth    = 4
)

// boardService implements nfcomms.v1.BoardService.
type boardService struct {
	nfcommsv1.UnsafeBoardServiceServer
	s *Server
}

// open finds the open device that a request names.
func (v boardService) open(name string) (*device, *nfcomms.Device, error) {
	d, err := v.s.named("name", name)
	if err != nil {
		return nil, nil, err
	}
	dev, err := d.use()
	return d, dev, err
}

// ReadRegister reads a register.
func (v boardService) ReadRegister(_ context.Context, req *nfcommsv1.ReadRegisterRequest) (*nfcommsv1.ReadRegisterResponse, error) {
	_, dev, err := v.open(req.GetName())
	if err != nil {
		return nil, err
	}
	value, err := admin.Peek(dev, int(req.GetBar()), req.GetOffset(), int(cmp.Or(req.GetWidth(), registerWidth)))
	return &nfcommsv1.ReadRegisterResponse{Value: value}, err
}

// WriteRegister writes a register.
func (v boardService) WriteRegister(_ context.Context, req *nfcommsv1.WriteRegisterRequest) (*nfcommsv1.WriteRegisterResponse, error) {
	_, dev, err := v.open(req.GetName())
	if err != nil {
		return nil, err
	}
	err = admin.Poke(dev, int(req.GetBar()), req.GetOffset(), int(cmp.Or(req.GetWidth(), registerWidth)), req.GetValue())
	return &nfcommsv1.WriteRegisterResponse{}, err
}

// WaitInterrupt waits for an interrupt, until the device is closed at the latest.
func (v boardService) WaitInterrupt(ctx context.Context, req *nfcommsv1.WaitInterruptRequest) (*nfcommsv1.WaitInterruptResponse, error) {
	d, dev, err := v.open(req.GetName())
	if err != nil {
		return nil, err
	}
	wait, err := durationOf("timeout", req.GetTimeout(), interruptWait)
	if err != nil {
		return nil, err
	}
	if wait > interruptLongest {
		return nil, invalid("timeout", "%v: at most %v", wait, interruptLongest)
	}
	after := req.GetAfter()
	if req.After == nil {
		if after, err = admin.Interrupts(dev, int(req.GetVector())); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	count, err := admin.WaitInterrupt(ctx, dev, int(req.GetVector()), after)
	return &nfcommsv1.WaitInterruptResponse{Count: count}, err
}

// SwitchInterrupt switches a vector.
func (v boardService) SwitchInterrupt(_ context.Context, req *nfcommsv1.SwitchInterruptRequest) (*nfcommsv1.SwitchInterruptResponse, error) {
	_, dev, err := v.open(req.GetName())
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.SwitchInterruptResponse{}, admin.SwitchInterrupt(dev, int(req.GetVector()), req.GetOn())
}

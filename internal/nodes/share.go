package nodes

import (
	"context"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
)

// share is the device of another node as one caller of Device has it. Once it is closed its
// calls fail; the device continues until the last share is closed.
type share struct {
	*farDevice
	closed atomic.Bool
}

// held calls f unless the share is closed.
func held[T any](s *share, f func() (T, error)) (result T, err error) {
	if s.closed.Load() {
		return result, errClosed
	}
	return f()
}

// Close gives the share up. It is idempotent.
func (s *share) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return s.release()
}

func (s *share) Health() (bridge.Health, error) { return held(s, s.farDevice.Health) }

func (s *share) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	return held(s, func() (bridge.Channel, error) { return s.farDevice.Subscribe(ctx, t) })
}

func (s *share) Start(ctx context.Context, p bridge.Program) (bridge.Process, error) {
	return held(s, func() (bridge.Process, error) { return s.farDevice.Start(ctx, p) })
}

func (s *share) Stop(ctx context.Context, id bridge.ProcessID) error {
	_, err := held(s, func() (none struct{}, err error) { return none, s.farDevice.Stop(ctx, id) })
	return err
}

func (s *share) Running(ctx context.Context, id bridge.ProcessID) (bool, error) {
	return held(s, func() (bool, error) { return s.farDevice.Running(ctx, id) })
}

func (s *share) Load(ctx context.Context, image []byte) (string, error) {
	return held(s, func() (string, error) { return s.farDevice.Load(ctx, image) })
}

func (s *share) Programs(ctx context.Context) ([]string, error) {
	return held(s, func() ([]string, error) { return s.farDevice.Programs(ctx) })
}

func (s *share) Memory(ctx context.Context, kind int) (bridge.Memory, error) {
	return held(s, func() (bridge.Memory, error) { return s.farDevice.Memory(ctx, kind) })
}

func (s *share) Alloc(size int) (bridge.Region, error) {
	return held(s, func() (bridge.Region, error) { return s.farDevice.Alloc(size) })
}

func (s *share) Register(mem []byte) (bridge.Region, error) {
	return held(s, func() (bridge.Region, error) { return s.farDevice.Register(mem) })
}

func (s *share) Reset(ctx context.Context) error {
	_, err := held(s, func() (none struct{}, err error) { return none, s.farDevice.Reset(ctx) })
	return err
}

func (s *share) Listen(ctx context.Context, o bridge.ListenOptions) (bridge.Listener, error) {
	return held(s, func() (bridge.Listener, error) { return s.farDevice.Listen(ctx, o) })
}

func (s *share) Dial(ctx context.Context, name string, o bridge.DialOptions) (bridge.Channel, error) {
	return held(s, func() (bridge.Channel, error) { return s.farDevice.Dial(ctx, name, o) })
}

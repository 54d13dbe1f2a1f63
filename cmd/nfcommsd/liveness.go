package main

import (
	"context"
	"fmt"
	"sync"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// liveness decides whether a restart of the daemon would help: it would if devices
// answered once and now none of them does. A device that never answered needs
// something else than a restart, and as long as one answers, its users need the
// daemon as it is.
type liveness struct {
	mu    sync.Mutex
	known map[string]bool // devices that answered
}

// check makes a round trip to every device and reports whether the daemon is of
// use as it is. A ctx that ends first counts as devices that do not answer.
func (l *liveness) check(ctx context.Context, s *control.Server) bool {
	if _, err := s.Health().Check(ctx, &healthpb.HealthCheckRequest{}); err != nil && ctx.Err() != nil {
		return false
	}
	states := make(map[string]nfcommsv1.Device_State)
	for name, state := range s.States() {
		states[name] = state
	}
	return l.decide(states)
}

// decide notes which devices answer and decides.
func (l *liveness) decide(states map[string]nfcommsv1.Device_State) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, answering := 0, 0
	for name, state := range states {
		switch state {
		case nfcommsv1.Device_STATE_FAILED, nfcommsv1.Device_STATE_OPENING, nfcommsv1.Device_STATE_UNSPECIFIED:
		default: // it answers, or is being reset, which has its own time limit
			l.known[name] = true
			answering++
		}
		if l.known[name] {
			known++
		}
	}
	for name := range l.known {
		if _, listed := states[name]; !listed {
			delete(l.known, name)
		}
	}
	return answering > 0 || known == 0
}

// statusLine describes in one line how the devices are.
func statusLine(s *control.Server) string {
	total, serving := 0, 0
	for _, state := range s.States() {
		total++
		if state == nfcommsv1.Device_STATE_READY || state == nfcommsv1.Device_STATE_DEGRADED {
			serving++
		}
	}
	return fmt.Sprintf("%d of %d devices serve", serving, total)
}

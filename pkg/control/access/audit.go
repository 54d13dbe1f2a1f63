package access

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control/internal/surge"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Bounds for the calls of one caller that are logged one by one. Those of methods that need Admin
// are all logged.
const (
	auditBurst  = 32
	auditWindow = time.Minute
)

// audited is whose calls are counted together.
type audited struct {
	caller string
	denied bool
}

// record is what the log says of one call.
type record struct {
	method string
	caller credentials.AuthInfo
	begin  time.Time

	mu       sync.Mutex // who receives for a handler may outlive it
	resource string
	register string // of a card, that was read or written
	bytes    int
}

// CallerOf names who makes a call, for control.Options.Caller: the user and
// groups of a process, or the name of a certificate.
func CallerOf(ctx context.Context) string { return Caller(callerOf(ctx)) }

// see takes over what a message of the call says of it: what it is about, and
// how many bytes of the caller's or the device's it has.
func (r *record) see(m any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := m.(interface {
		GetHeader() *nfcommsv1.LoadProgramHeader
	}); ok && m.GetHeader() != nil {
		r.resource = m.GetHeader().GetParent()
	}
	switch m := m.(type) {
	case interface{ GetName() string }:
		r.resource = m.GetName()
	case interface{ GetParent() string }:
		r.resource = m.GetParent()
	}
	switch m := m.(type) {
	case *nfcommsv1.ReadRegisterRequest:
		r.register = fmt.Sprintf("bar %d offset %#x", m.GetBar(), m.GetOffset())
	case *nfcommsv1.WriteRegisterRequest:
		r.register = fmt.Sprintf("bar %d offset %#x value %#x", m.GetBar(), m.GetOffset(), m.GetValue())
	case *nfcommsv1.SwitchInterruptRequest:
		r.register = fmt.Sprintf("vector %d on %t", m.GetVector(), m.GetOn())
	case interface{ GetPayload() []byte }:
		r.bytes += len(m.GetPayload())
	case interface{ GetChunk() []byte }:
		r.bytes += len(m.GetChunk())
	}
}

// got takes over the size of a message that the device gave.
func (r *record) got(m any) {
	if m, ok := m.(*nfcommsv1.ReceiveMessageResponse); ok {
		r.bytes += len(m.GetPayload())
	}
}

// audit logs how a call ended that does more than to look. Of a caller that
// makes many some are logged, and the rest is counted.
func (a *Authorizer) audit(r *record, err error) {
	need := a.need[r.method]
	if need < Operator {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := "operator call"
	if need == Admin {
		text = "admin call"
	} else if !a.surges.Pass(audited{caller: a.Owner(r.caller)}, short(r.method), r.bytes) {
		return
	}
	args := []any{
		"method", r.method, "caller", Caller(r.caller), "resource", r.resource, "bytes", r.bytes,
		"code", status.Code(err).String(), "took", time.Since(r.begin),
	}
	if r.register != "" {
		args = append(args, "register", r.register)
	}
	if err != nil {
		args = append(args, "error", err)
	}
	a.log.Info(text, args...)
}

// denial logs a call that may not be, as audit does.
func (a *Authorizer) denial(who credentials.AuthInfo, method string, err error) {
	owner := Caller(nil)
	if who != nil {
		owner = a.Owner(who)
	}
	if a.surges.Pass(audited{owner, true}, short(method), 0) {
		a.log.Warn("call denied", "method", method, "caller", Caller(who), "error", err)
	}
}

// counted logs what was not logged one by one.
func (a *Authorizer) counted(of audited, held map[string]surge.Tally) {
	text := "calls not logged one by one"
	if of.denied {
		text = "denied calls not logged one by one"
	}
	a.log.Warn(text, "caller", of.caller, "calls", surge.Text(held))
}

// Flush logs what was counted until now.
func (a *Authorizer) Flush() { a.surges.Flush() }

// short returns the method without its service.
func short(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }

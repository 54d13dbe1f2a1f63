package access

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/internal/owners"
	"github.com/nfcomms/nfcomms/pkg/control/internal/surge"
)

// Reasons of a denied call, as ErrorInfo carries them.
const (
	// ReasonUnknownPeer: the connection does not report who the caller is.
	ReasonUnknownPeer = "UNKNOWN_PEER"
	// ReasonRoleTooLow: the caller has no role, or a lower one than the method
	// needs. The metadata have them: role, needed, method.
	ReasonRoleTooLow = "ROLE_TOO_LOW"
	// ReasonNoPolicy: no role is enough, because the method is in no table.
	ReasonNoPolicy = "NO_POLICY"
)

// RoleHeader is the response header of unary calls that has the caller's role.
const RoleHeader = "nfcomms-role"

// domain is that of the reasons.
const domain = "nfcomms.dev"

// Authorizer lets calls pass whose caller has the role that the method needs, and
// denies all others. All methods are safe for concurrent use.
type Authorizer struct {
	need   map[string]Role
	log    *slog.Logger
	surges *surge.Limiter[audited]
	owners *owners.Owners

	mu      sync.Mutex
	policy  *Policy
	streams map[*guarded]struct{}
}

// NewAuthorizer returns an authorizer for the methods of need, by full name. It logs who made
// which call of a method that needs Operator or Admin, on what, and how it ended,
// and the denials. Of a caller that makes very many it counts those that do not
// need Admin; Flush logs what is counted. A nil log discards.
func NewAuthorizer(p *Policy, need map[string]Role, log *slog.Logger) *Authorizer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Authorizer{need: maps.Clone(need), log: log, owners: owners.New(), policy: p, streams: make(map[*guarded]struct{})}
	a.surges = surge.New(auditBurst, auditWindow, a.counted)
	return a
}

// RoleOf returns the role of a caller, under the policy in force.
func (a *Authorizer) RoleOf(who credentials.AuthInfo) Role {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.policy.RoleOf(who)
}

// Owner names what a caller is counted under, for Limits.Owner: the name of a certificate, or the
// user. A user id that the policy names is a user of its own. One that /etc/subuid gives to a user,
// for user namespaces, is that user's, as a user with thousands of ids is one caller nevertheless.
// Ids that no user database knows count together by pod or other control group, or as one caller
// "others" if that is unknown.
func (a *Authorizer) Owner(who credentials.AuthInfo) string {
	local, ok := who.(Local)
	if !ok {
		return Caller(who)
	}
	a.mu.Lock()
	_, named := a.policy.users[local.UID]
	a.mu.Unlock()
	if named {
		return owners.Name(local.UID)
	}
	return a.owners.Of(local.UID, local.group)
}

// SetPolicy replaces the policy for calls from now on, and ends the streams
// whose caller may no longer have them.
func (a *Authorizer) SetPolicy(p *Policy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.policy = p
	for s := range a.streams {
		if err := a.check(p, s.info, s.method); err != nil {
			s.end(err)
		}
	}
}

// Unary is the interceptor of unary calls.
func (a *Authorizer) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	arrivalOf(ctx).came()
	who := callerOf(ctx)
	a.mu.Lock()
	policy := a.policy
	a.mu.Unlock()
	// Without a transport under ctx nobody reads it.
	_ = grpc.SetHeader(ctx, metadata.Pairs(RoleHeader, policy.RoleOf(who).String()))
	if err := a.check(policy, who, info.FullMethod); err != nil {
		a.denial(who, info.FullMethod, err)
		return nil, err
	}
	r := &record{method: info.FullMethod, caller: who, begin: time.Now()}
	r.see(req)
	resp, err := handler(ctx, req)
	r.got(resp)
	a.audit(r, err)
	return resp, err
}

// Stream is the interceptor of streaming calls.
func (a *Authorizer) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, end := context.WithCancelCause(ss.Context())
	defer end(nil)
	s := &guarded{ServerStream: ss, ctx: ctx, end: end, info: callerOf(ctx), method: info.FullMethod, request: arrivalOf(ctx)}
	s.record = &record{method: s.method, caller: s.info, begin: time.Now()}
	if err := a.enter(s); err != nil {
		a.denial(s.info, s.method, err)
		return err
	}
	defer a.leave(s)
	err := handler(srv, s)
	if revoked := (*denied)(nil); errors.As(context.Cause(ctx), &revoked) {
		err = revoked
	}
	a.audit(s.record, err)
	return err
}

// enter admits a stream and keeps it in view of SetPolicy, in one step.
func (a *Authorizer) enter(s *guarded) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.check(a.policy, s.info, s.method); err != nil {
		return err
	}
	a.streams[s] = struct{}{}
	return nil
}

func (a *Authorizer) leave(s *guarded) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.streams, s)
}

// guarded is a stream that SetPolicy can end.
type guarded struct {
	grpc.ServerStream
	ctx    context.Context
	end    context.CancelCauseFunc
	info   credentials.AuthInfo
	method string

	request *arrival
	begun   bool // the first message arrived
	record  *record
}

func (s *guarded) Context() context.Context { return s.ctx }

// RecvMsg waits for the next message, but not for ever.
func (s *guarded) RecvMsg(m any) error {
	if s.begun {
		s.request.next()
	}
	err := s.ServerStream.RecvMsg(m)
	s.request.came()
	s.begun = true
	if err == nil {
		s.record.see(m)
	}
	return err
}

// SendMsg sends no faster than the caller's account allows.
func (s *guarded) SendMsg(m any) error {
	a := accountOf(s.info)
	a.charge(messageCost)
	a.wait(s.ctx.Done())
	return s.ServerStream.SendMsg(m)
}

// denied is the error of a call that may not be.
type denied struct{ status *status.Status }

func (d *denied) Error() string              { return d.status.Message() }
func (d *denied) GRPCStatus() *status.Status { return d.status }

// check returns nil if the caller has the role that the method needs.
func (a *Authorizer) check(p *Policy, who credentials.AuthInfo, method string) error {
	need, ok := a.need[method]
	if !ok || need == None {
		return deny(codes.PermissionDenied, ReasonNoPolicy, fmt.Sprintf("%s is open to nobody", method), map[string]string{"method": method})
	}
	if who == nil {
		return deny(codes.Unauthenticated, ReasonUnknownPeer, "the connection does not say who calls", nil)
	}
	if role := p.RoleOf(who); role < need {
		return deny(codes.PermissionDenied, ReasonRoleTooLow,
			fmt.Sprintf("%s needs the role %v; %s has the role %v", method, need, Caller(who), role),
			map[string]string{"method": method, "needed": need.String(), "role": role.String()})
	}
	return nil
}

func deny(code codes.Code, reason, text string, metadata map[string]string) error {
	st := status.New(code, text)
	if with, err := st.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: metadata}); err == nil {
		st = with
	}
	return &denied{st}
}

// callerOf returns who calls, nil if the connection does not identify the caller.
func callerOf(ctx context.Context) credentials.AuthInfo {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	switch info := p.AuthInfo.(type) {
	case Local, Remote:
		return info
	case credentials.TLSInfo:
		if verified(info) != nil {
			return info
		}
	}
	return nil
}

// accountOf returns the account of a caller, nil without limits.
func accountOf(who credentials.AuthInfo) *account {
	switch who := who.(type) {
	case Local:
		return who.account
	case Remote:
		return who.account
	}
	return nil
}

// Caller names a caller for a log line or a message.
func Caller(who credentials.AuthInfo) string {
	switch who := who.(type) {
	case Local:
		return who.String()
	case Remote:
		return Caller(who.TLSInfo)
	case credentials.TLSInfo:
		if leaf := verified(who); leaf != nil {
			return nameOf(leaf)
		}
	}
	return "unknown peer"
}

// nameOf returns the name by which a policy would know a certificate.
func nameOf(leaf *x509.Certificate) string {
	if len(leaf.URIs) > 0 {
		return "uri:" + leaf.URIs[0].String()
	}
	return "cn:" + leaf.Subject.CommonName
}

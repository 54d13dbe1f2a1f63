package access

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// me is this process as a subject.
func me() string { return fmt.Sprintf("uid:%d", os.Geteuid()) }

func TestAuthorizerByRole(t *testing.T) {
	ctx := deadline(t)
	authorizer := NewAuthorizer(NewPolicy(), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), authorizer)
	conn := local(t, address)
	devices := nfcommsv1.NewDeviceServiceClient(conn)
	calls := []struct {
		need Role
		call func() error
	}{
		{Viewer, func() error { return check(ctx, conn) }},
		{Operator, func() error {
			_, err := devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{})
			return err
		}},
		{Admin, func() error {
			_, err := devices.ResetDevice(ctx, &nfcommsv1.ResetDeviceRequest{})
			return err
		}},
		{Admin, func() error {
			s, err := devices.LoadProgram(ctx)
			require.NoError(t, err)
			_, err = s.Recv()
			return err
		}},
	}
	for role := None; role <= Admin; role++ {
		p := NewPolicy()
		if role != None {
			require.NoError(t, p.Grant(role, me()))
		}
		authorizer.SetPolicy(p)
		for i, c := range calls {
			err := c.call()
			if role >= c.need { // nobody serves what only the authorizer is asked for
				require.Contains(t, []codes.Code{codes.OK, codes.Unimplemented}, status.Code(err), "%v call %d: %v", role, i, err)
				continue
			}
			require.Equal(t, codes.PermissionDenied, status.Code(err), "%v call %d", role, i)
			info := reasonOf(err)
			require.Equal(t, ReasonRoleTooLow, info.Reason)
			require.Equal(t, "nfcomms.dev", info.Domain)
			require.Equal(t, role.String(), info.Metadata["role"])
			require.Equal(t, c.need.String(), info.Metadata["needed"])
		}
	}
}

// TestRoleHeader: the answer has the role, also when it is a refusal.
func TestRoleHeader(t *testing.T) {
	ctx := deadline(t)
	authorizer := NewAuthorizer(NewPolicy(), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), authorizer)
	conn := local(t, address)
	for role := None; role <= Admin; role++ {
		p := NewPolicy()
		if role != None {
			require.NoError(t, p.Grant(role, me()))
		}
		authorizer.SetPolicy(p)
		var header metadata.MD
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
		require.Equal(t, role == None, err != nil)
		require.Equal(t, []string{role.String()}, header.Get(RoleHeader))
	}
}

// TestAuthorizerDeniesByDefault: a method in no table is open to nobody.
func TestAuthorizerDeniesByDefault(t *testing.T) {
	ctx := deadline(t)
	need := Methods()
	delete(need, "/grpc.health.v1.Health/Check")
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), NewAuthorizer(granting(t, Admin, me()), need, nil))
	err := check(ctx, local(t, address))
	require.Equal(t, codes.PermissionDenied, status.Code(err), err)
	require.Equal(t, ReasonNoPolicy, reasonOf(err).Reason)
}

// TestAuthorizerNeedsCredentials: a server without this package's credentials knows
// nobody.
func TestAuthorizerNeedsCredentials(t *testing.T) {
	ctx := deadline(t)
	l, address := listen(t)
	serve(t, l, insecure.NewCredentials(), NewAuthorizer(granting(t, Admin, me()), Methods(), nil))
	err := check(ctx, local(t, address))
	require.Equal(t, codes.Unauthenticated, status.Code(err), err)
	require.Equal(t, ReasonUnknownPeer, reasonOf(err).Reason)

	_, err = NewAuthorizer(NewPolicy(), Methods(), nil).Unary(t.Context(), nil,
		&grpc.UnaryServerInfo{FullMethod: "/grpc.health.v1.Health/Check"}, nil)
	require.Equal(t, ReasonUnknownPeer, reasonOf(err).Reason, "no peer at all")
}

// TestAuthorizerEndsStreams: a role that is taken away takes the streams with it,
// and a role that stays does not.
func TestAuthorizerEndsStreams(t *testing.T) {
	ctx := deadline(t)
	authorizer := NewAuthorizer(granting(t, Viewer, me()), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), authorizer)
	watch, err := healthpb.NewHealthClient(local(t, address)).Watch(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)

	authorizer.SetPolicy(granting(t, Admin, me()))
	authorizer.mu.Lock()
	require.Len(t, authorizer.streams, 1)
	for s := range authorizer.streams {
		require.NoError(t, s.ctx.Err(), "a stream that is still allowed")
	}
	authorizer.mu.Unlock()

	authorizer.SetPolicy(NewPolicy())
	_, err = watch.Recv()
	require.Equal(t, codes.PermissionDenied, status.Code(err), err)
	require.Equal(t, ReasonRoleTooLow, reasonOf(err).Reason)
	require.Eventually(t, func() bool {
		authorizer.mu.Lock()
		defer authorizer.mu.Unlock()
		return len(authorizer.streams) == 0
	}, watchdog, 1e6, "the stream is forgotten")
}

// log is a buffer that several goroutines write to.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// TestAuthorizerLog: denials do not fill the log, and calls of admins are all there.
func TestAuthorizerLog(t *testing.T) {
	ctx := deadline(t)
	var out log
	authorizer := NewAuthorizer(NewPolicy(), Methods(), slog.New(slog.NewTextHandler(&out, nil)))
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), authorizer)
	conn := local(t, address)
	for range 500 {
		require.Error(t, check(ctx, conn))
	}
	require.Equal(t, auditBurst, out.count("msg=\"call denied"))
	authorizer.Flush()
	require.Equal(t, 1, out.count(`msg="denied calls not logged one by one"`))
	require.Equal(t, 1, out.count(fmt.Sprintf(`calls="%d more: %[1]d Check"`, 500-auditBurst)))

	authorizer.SetPolicy(granting(t, Admin, me()))
	for range 50 {
		_, err := nfcommsv1.NewDeviceServiceClient(conn).ResetDevice(ctx, &nfcommsv1.ResetDeviceRequest{})
		require.Equal(t, codes.Unimplemented, status.Code(err))
		require.NoError(t, check(ctx, conn))
	}
	require.Equal(t, 50, out.count("admin call"))
	require.Equal(t, 50, out.count(fmt.Sprintf(`ResetDevice caller="uid %d gid %d pid %d"`, os.Geteuid(), os.Getegid(), os.Getpid())))
}

func TestCallerNames(t *testing.T) {
	require.Equal(t, "uid 1 gid 2 pid 3", Caller(Local{UID: 1, GID: 2, PID: 3}))
	require.Equal(t, "uri:spiffe://example.org/a", Caller(shown(t, "x", "spiffe://example.org/a")))
	require.Equal(t, "cn:x", Caller(shown(t, "x")))
	require.Equal(t, "unknown peer", Caller(nil))
	require.Nil(t, callerOf(context.Background()))
	by := func(info credentials.AuthInfo) credentials.AuthInfo {
		return callerOf(peer.NewContext(t.Context(), &peer.Peer{AuthInfo: info}))
	}
	require.Equal(t, shown(t, "x"), by(shown(t, "x")))
	require.Nil(t, by(credentials.TLSInfo{}), "no certificate was verified")
}

// TestAudit: the log has caller, operation, device, outcome and size of each call, and not its
// contents; calls of a very busy caller are counted.
func TestAudit(t *testing.T) {
	ctx := deadline(t)
	var out log
	authorizer := NewAuthorizer(granting(t, Admin, me()), Methods(), slog.New(slog.NewTextHandler(&out, nil)))
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), authorizer)
	conn := local(t, address)
	devices := nfcommsv1.NewDeviceServiceClient(conn)
	_, err := devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{Name: "devices/a"})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.Equal(t, 1, out.count(fmt.Sprintf(
		`msg="operator call" method=/nfcomms.v1.DeviceService/DrainDevice caller="uid %d gid %d pid %d" resource=devices/a bytes=0 code=Unimplemented`,
		os.Geteuid(), os.Getegid(), os.Getpid())))
	s, err := devices.LoadProgram(ctx)
	require.NoError(t, err)
	_ = s.Send(&nfcommsv1.LoadProgramRequest{}) // it ends at once, as nobody serves it
	_, err = s.Recv()
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.Equal(t, 1, out.count(`msg="admin call" method=/nfcomms.v1.DeviceService/LoadProgram`))
	here := peer.NewContext(ctx, &peer.Peer{AuthInfo: Local{UID: uint32(os.Geteuid())}})
	for method, req := range map[string]any{
		"ReadRegister":    &nfcommsv1.ReadRegisterRequest{Name: "devices/b", Bar: 1, Offset: 256},
		"WriteRegister":   &nfcommsv1.WriteRegisterRequest{Name: "devices/b", Offset: 256, Value: 66},
		"SwitchInterrupt": &nfcommsv1.SwitchInterruptRequest{Name: "devices/b", Vector: 3},
	} {
		_, err := authorizer.Unary(here, req, &grpc.UnaryServerInfo{FullMethod: "/nfcomms.v1.BoardService/" + method},
			func(context.Context, any) (any, error) { return nil, nil })
		require.NoError(t, err)
	}
	require.Equal(t, 1, out.count(`register="bar 1 offset 0x100"`))
	require.Equal(t, 1, out.count(`register="bar 0 offset 0x100 value 0x42"`))
	require.Equal(t, 1, out.count(`register="vector 3 on false"`))
	for range 1000 {
		_, err := authorizer.Unary(here, &nfcommsv1.SendMessageRequest{Name: "devices/a/channels/1", Payload: []byte("secret")},
			&grpc.UnaryServerInfo{FullMethod: "/nfcomms.v1.MessageService/SendMessage"},
			func(context.Context, any) (any, error) { return nil, status.Error(codes.Aborted, "no") })
		require.Equal(t, codes.Aborted, status.Code(err))
	}
	require.Equal(t, auditBurst, out.count(`msg="operator call"`))
	require.Positive(t, out.count("resource=devices/a/channels/1 bytes=6 code=Aborted"))
	authorizer.Flush()
	require.Equal(t, 1, out.count(fmt.Sprintf(`calls="%d more: %[1]d SendMessage; %d bytes"`, 1001-auditBurst, 6*(1001-auditBurst))))
	require.Zero(t, out.count("secret"))
}

// naming is a stream whose messages name a device.
type naming struct{ grpc.ServerStream }

func (naming) RecvMsg(m any) error {
	m.(*nfcommsv1.ListProgramsRequest).Parent = "devices/c"
	return nil
}

// TestRecord: what a call is about is in its messages.
func TestRecord(t *testing.T) {
	var r record
	r.see(&nfcommsv1.LoadProgramRequest{Part: &nfcommsv1.LoadProgramRequest_Header{Header: &nfcommsv1.LoadProgramHeader{Parent: "devices/a"}}})
	r.see(&nfcommsv1.LoadProgramRequest{Part: &nfcommsv1.LoadProgramRequest_Chunk{Chunk: make([]byte, 100)}})
	r.got(&nfcommsv1.ReceiveMessageResponse{Payload: make([]byte, 7)})
	require.Equal(t, "devices/a", r.resource)
	require.Equal(t, 107, r.bytes)
	r.see(&nfcommsv1.ListProgramsRequest{Parent: "devices/b"})
	require.Equal(t, "devices/b", r.resource)
	s := &guarded{ServerStream: naming{}, ctx: t.Context(), record: &r}
	require.NoError(t, s.RecvMsg(&nfcommsv1.ListProgramsRequest{}))
	require.Equal(t, "devices/c", r.resource)
}

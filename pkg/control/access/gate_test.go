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
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// me is this process as a subject.
func me() string { return fmt.Sprintf("uid:%d", os.Geteuid()) }

func TestGateByRole(t *testing.T) {
	ctx := deadline(t)
	gate := NewGate(NewPolicy(), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), gate)
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
		gate.SetPolicy(p)
		for i, c := range calls {
			err := c.call()
			if role >= c.need { // nobody serves what only the gate is asked for
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

// TestRoleHeader: the answer tells the role, also when it is a refusal.
func TestRoleHeader(t *testing.T) {
	ctx := deadline(t)
	gate := NewGate(NewPolicy(), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), gate)
	conn := local(t, address)
	for role := None; role <= Admin; role++ {
		p := NewPolicy()
		if role != None {
			require.NoError(t, p.Grant(role, me()))
		}
		gate.SetPolicy(p)
		var header metadata.MD
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
		require.Equal(t, role == None, err != nil)
		require.Equal(t, []string{role.String()}, header.Get(RoleHeader))
	}
}

// TestGateDeniesByDefault: a method in no table is open to nobody.
func TestGateDeniesByDefault(t *testing.T) {
	ctx := deadline(t)
	need := Methods()
	delete(need, "/grpc.health.v1.Health/Check")
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), NewGate(granting(t, Admin, me()), need, nil))
	err := check(ctx, local(t, address))
	require.Equal(t, codes.PermissionDenied, status.Code(err), err)
	require.Equal(t, ReasonNoPolicy, reasonOf(err).Reason)
}

// TestGateNeedsCredentials: a server without this package's credentials knows
// nobody.
func TestGateNeedsCredentials(t *testing.T) {
	ctx := deadline(t)
	l, address := listen(t)
	serve(t, l, insecure.NewCredentials(), NewGate(granting(t, Admin, me()), Methods(), nil))
	err := check(ctx, local(t, address))
	require.Equal(t, codes.Unauthenticated, status.Code(err), err)
	require.Equal(t, ReasonUnknownPeer, reasonOf(err).Reason)

	_, err = NewGate(NewPolicy(), Methods(), nil).Unary(t.Context(), nil,
		&grpc.UnaryServerInfo{FullMethod: "/grpc.health.v1.Health/Check"}, nil)
	require.Equal(t, ReasonUnknownPeer, reasonOf(err).Reason, "no peer at all")
}

// TestGateEndsStreams: a role that is taken away takes the streams with it,
// and a role that stays does not.
func TestGateEndsStreams(t *testing.T) {
	ctx := deadline(t)
	gate := NewGate(granting(t, Viewer, me()), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), gate)
	watch, err := healthpb.NewHealthClient(local(t, address)).Watch(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)

	gate.SetPolicy(granting(t, Admin, me()))
	gate.mu.Lock()
	require.Len(t, gate.streams, 1)
	for s := range gate.streams {
		require.NoError(t, s.ctx.Err(), "a stream that is still allowed")
	}
	gate.mu.Unlock()

	gate.SetPolicy(NewPolicy())
	_, err = watch.Recv()
	require.Equal(t, codes.PermissionDenied, status.Code(err), err)
	require.Equal(t, ReasonRoleTooLow, reasonOf(err).Reason)
	require.Eventually(t, func() bool {
		gate.mu.Lock()
		defer gate.mu.Unlock()
		return len(gate.streams) == 0
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

// TestGateLog: denials do not fill the log, and calls of admins are all there.
func TestGateLog(t *testing.T) {
	ctx := deadline(t)
	var out log
	gate := NewGate(NewPolicy(), Methods(), slog.New(slog.NewTextHandler(&out, nil)))
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), gate)
	conn := local(t, address)
	for range 500 {
		require.Error(t, check(ctx, conn))
	}
	require.Positive(t, out.count("call denied"))
	require.Less(t, out.count("call denied"), 250)

	gate.SetPolicy(granting(t, Admin, me()))
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
}
